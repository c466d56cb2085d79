"""With protectKernelDefaults the kernel's settings must be what the kubelet wants before it starts.

It then only compares and exits with `invalid kernel flag: vm/overcommit_memory, expected value: 1, actual value: 0`.
Without protectKernelDefaults it sets them itself, and their values do not matter.

Fix: write the settings to a file in /etc/sysctl.d and `sysctl --system`, or give up protectKernelDefaults.
"""

from collections.abc import Iterator

from drtool.core.check import EvidenceMissing
from drtool.core.report import Finding, Severity
from manifests.node import Node

SEVERITY = Severity.CRITICAL
EXPLAINS = ("kubelet-not-running", "container-exited", "component-not-ready")
# k8s.io/component-helpers/node/util/sysctl
WANTED = {
    "vm.overcommit_memory": "1",
    "vm.panic_on_oom": "0",
    "kernel.panic": "10",
    "kernel.panic_on_oops": "1",
    "kernel.keys.root_maxkeys": "1000000",
    "kernel.keys.root_maxbytes": "25000000",
}


def find(node: Node) -> Iterator[Finding]:
    protects, at = node.kubelet.setting("protect-kernel-defaults", "protectKernelDefaults", default=False)
    if str(protects).lower() != "true":
        return
    gap: EvidenceMissing | None = None
    for name, wanted in WANTED.items():
        try:
            value, evidence = node.sysctl(name)
        except EvidenceMissing as missing:
            gap = gap or missing
            continue
        if value != wanted:
            yield Finding(f"{name} is {value}, and the kubelet insists on {wanted}", (evidence, at))
    if gap:
        raise gap
