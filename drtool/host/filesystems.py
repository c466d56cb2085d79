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
    answers = together({mount: partial(_measured, mount) for mount in places(mounts)}, seconds)
    kept: dict[str, tuple[int, os.statvfs_result]] = {}
    for mount, answer in sorted(answers.items()):
        if isinstance(answer, Exception) or not answer[1].f_blocks:
            continue
        above = max((place for place in kept if mount.startswith(place.rstrip("/") + "/")), key=len, default="")
        if not above or kept[above][0] != answer[0]:  # else a bind mount: what lies above tells the same
            kept[mount] = answer
    return tuple(
        {
            "mount": mount,
            "size": found.f_blocks * found.f_frsize,
            "free": found.f_bavail * found.f_frsize,
            "inodes": found.f_files,
            "inodesFree": found.f_ffree,
        }
        for mount, (_, found) in kept.items()
    )


def _measured(mount: str) -> tuple[int, os.statvfs_result]:
    return os.stat(mount).st_dev, os.statvfs(mount)  # noqa: PTH116 - beside statvfs


def places(mounts: str) -> tuple[str, ...]:
    """Where file systems worth measuring are mounted; the root always, whatever it is."""
    return tuple(dict.fromkeys(["/", *_mounted(mounts)]))[:MOST]


def _mounted(mounts: str) -> Iterator[str]:
    for line in mounts.splitlines():
        fields = line.split()
        if len(fields) < 3 or PSEUDO.fullmatch(fields[2]) or fields[1].startswith(("/proc", "/sys", "/dev")):
            continue
        if re.search(r"/kubelet/pods/|/sandboxes/|/rootfs$|/shm$|/overlay", fields[1]):
            continue  # the volumes of Pods, a line each
        yield re.sub(r"\\([0-7]{3})", lambda octal: chr(int(octal[1], 8)), fields[1])  # a space is \040
