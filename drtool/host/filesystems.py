"""How full this machine's file systems are."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from functools import partial

from drtool.host.patience import together

# what has no disk of its own behind it, or is a container's view of one
PSEUDO = re.compile(
    r"autofs|binfmt_misc|bpf|cgroup2?|configfs|debugfs|devpts|devtmpfs|efivarfs|fuse\.lxcfs|fusectl|hugetlbfs|iso9660|"
    r"mqueue|nsfs|overlay|proc|pstore|ramfs|rpc_pipefs|securityfs|selinuxfs|squashfs|sysfs|tracefs"
)
MOST = 100


def filesystems(mounts: str, seconds: float = 3.0) -> tuple[dict[str, int | str], ...]:
    """`{"mount", "size", "free", "inodes", "inodesFree"}` of each mount in `mounts` (the text of /proc/mounts).

    Sizes in bytes; `free` is what is left for others than root. One that does not answer (a lost NFS) is left out.
    """
    answers = together({mount: partial(os.statvfs, mount) for mount in places(mounts)}, seconds)
    return tuple(
        {
            "mount": mount,
            "size": found.f_blocks * found.f_frsize,
            "free": found.f_bavail * found.f_frsize,
            "inodes": found.f_files,
            "inodesFree": found.f_ffree,
        }
        for mount, found in sorted(answers.items())
        if isinstance(found, os.statvfs_result) and found.f_blocks
    )


def places(mounts: str) -> tuple[str, ...]:
    """Where file systems worth measuring are mounted; the root always, whatever it is."""
    return tuple(dict.fromkeys(["/", *_mounted(mounts)]))[:MOST]


def _mounted(mounts: str) -> Iterator[str]:
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3 or PSEUDO.fullmatch(fields[2]) or fields[1].startswith(("/proc", "/sys", "/dev")):
            continue
        if "/kubelet/pods/" in fields[1] or "/containerd/" in fields[1] or "/containers/storage/" in fields[1]:
            continue  # the volumes of Pods, one line each
        yield re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])  # a space is \040
