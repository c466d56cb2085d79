"""Every error that a person sees: one line saying what, where and why, and a hint what to do.

DrtoolError              1   failed
├── UsageError           2   wrong usage or configuration
├── CannotTell           3   not a node that drtool knows
├── Unsound              4   the backup, the db or the snapshot is bad
├── NotVerified          5   stored, but not verified
├── NotFound            10   store or backup not found
├── Locked              11   another run holds the lock
├── CannotOpen          12   cannot decrypt, or the signature is wrong
├── Refused             20   it would destroy something
├── TakenBack           21   a plan failed and was taken back
└── HalfDone            22   a plan failed and could not be taken back
"""

from __future__ import annotations

import errno
import os
from typing import ClassVar


class DrtoolError(Exception):
    """`what` names the thing and the place, `hint` what to do; the cause is chained with `raise ... from`."""

    exit_status: ClassVar[int] = 1

    def __init__(self, what: str, hint: str = "") -> None:
        super().__init__(what)
        self.what = what
        self.hint = hint

    def __str__(self) -> str:
        return f"{self.what}; {self.hint}" if self.hint else self.what


class UsageError(DrtoolError):
    exit_status = 2


class CannotTell(DrtoolError):
    exit_status = 3


class Unsound(DrtoolError):
    exit_status = 4


class NotVerified(DrtoolError):
    exit_status = 5


class NotFound(DrtoolError):
    exit_status = 10


class Locked(DrtoolError):
    exit_status = 11


class CannotOpen(DrtoolError):
    exit_status = 12


class Refused(DrtoolError):
    exit_status = 20


class TakenBack(DrtoolError):
    exit_status = 21


class HalfDone(DrtoolError):
    exit_status = 22


def what_to_do(number: int | None) -> str:
    """The hint for what the system refused, by its errno; "" where there is none."""
    if number in {errno.EACCES, errno.EPERM}:
        return "" if os.geteuid() == 0 else "run drtool as root, or give this user the right to it"
    if number == errno.EROFS:
        return "see why it is read-only (dmesg, findmnt), then mount it writable: mount -o remount,rw"
    return "free some space there, or name another place" if number in {errno.ENOSPC, errno.EDQUOT} else ""
