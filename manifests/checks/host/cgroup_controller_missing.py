"""The kernel must give the memory, cpu, cpuset and pids controllers to control groups.

The kubelet exits with `Following Cgroup subsystem not mounted: [memory]` otherwise. Small boards boot with the memory
controller off unless the kernel's command line turns it on, and an upgrade may overwrite that line.

Fix: add `cgroup_enable=memory cgroup_memory=1` to the kernel's command line (/boot/firmware/cmdline.txt), reboot.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Evidence, Finding, Severity
from manifests.host.cgroups import CONTROLLERS
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready", "cgroup-v1-vs-kubelet")
NEEDED = ("cpu", "cpuset", "memory", "pids")
TABLE = "/proc/cgroups"


def find(node: Node) -> Iterator[Finding]:
    unified = node.entry(CONTROLLERS)
    if unified.data is not None:
        names = unified.data.decode("ascii", "replace").split()
        off = {match[1]: at for match, at in node.find(TABLE, r"^(\w+)\s+\d+\s+\d+\s+0\s*$")}
        missing = [name for name in NEEDED if name not in names or name in off]
        where = next((off[name] for name in missing if name in off), Evidence(CONTROLLERS, 1, " ".join(names)))
    elif node.entry(TABLE).data is not None:
        rows = {match[1]: (match[2], at) for match, at in node.find(TABLE, r"^(\w+)\s+\d+\s+\d+\s+([01])")}
        missing = [name for name in NEEDED if rows.get(name, ("0",))[0] == "0"]
        where = next((rows[name][1] for name in missing if name in rows), Evidence(TABLE))
    else:
        raise EvidenceMissing(f"neither {CONTROLLERS} nor {TABLE} is in this tree")
    if missing:
        command_line = node.find("/proc/cmdline", r".+")
        yield Finding(
            f"The kernel gives control groups no {', '.join(missing)} controller",
            (where, *(evidence for _, evidence in command_line[:1])),
        )
