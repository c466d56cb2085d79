"""Values of the kubelet's settings that the kubelet itself refuses, each with its line.

The rules are those of pkg/kubelet/apis/config/validation and of what reads the values afterwards (eviction/helpers.go,
cm/cpumanager, cm/memorymanager, sysctl/allowlist.go), read in 1.24 to 1.37 and tried on the kubelets 1.36 and 1.37.
A rule that only some releases have is applied where every release that may run here has it.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from drtool.core.report import Evidence
from manifests.kubelet import Kubelet
from manifests.quantity import quantity
from manifests.releases import tables

Refused = tuple[str, tuple[Evidence, ...]]
Minors = range
"""Minors of Kubernetes 1.x that may run here: one where the kubelet's version is known."""

# Field, flag, least and greatest value (None: any), first minor with the rule. 0 stands for the default where 0 is in.
RANGES: tuple[tuple[str, str, float | None, float | None, int], ...] = (
    ("imageGCHighThresholdPercent", "image-gc-high-threshold", 0, 100, 0),
    ("imageGCLowThresholdPercent", "image-gc-low-threshold", 0, 100, 0),
    ("iptablesDropBit", "iptables-drop-bit", 0, 31, 0),
    ("iptablesMasqueradeBit", "iptables-masquerade-bit", 0, 31, 0),
    ("oomScoreAdj", "oom-score-adj", -1000, 1000, 0),
    ("port", "port", 0, 65535, 0),
    ("readOnlyPort", "read-only-port", 0, 65535, 0),
    ("healthzPort", "healthz-port", 0, 65535, 0),
    ("maxPods", "max-pods", 0, None, 0),
    ("podsPerCore", "pods-per-core", 0, None, 0),
    ("maxOpenFiles", "max-open-files", 0, None, 0),
    ("eventBurst", "event-burst", 0, None, 0),
    ("eventRecordQPS", "event-qps", 0, None, 0),
    ("kubeAPIBurst", "kube-api-burst", 0, None, 0),
    ("kubeAPIQPS", "kube-api-qps", 0, None, 0),
    ("registryBurst", "registry-burst", 0, None, 0),
    ("registryPullQPS", "registry-qps", 0, None, 0),
    ("nodeLeaseDurationSeconds", "", 0, None, 0),
    ("nodeStatusMaxImages", "node-status-max-images", -1, None, 0),
    ("containerLogMaxFiles", "container-log-max-files", 2, None, 0),
    ("containerLogMaxWorkers", "", 1, None, 30),
    ("maxParallelImagePulls", "", 1, None, 27),
)
# The same in seconds. Zero stands for the default, except for containerLogMonitorInterval.
DURATIONS: tuple[tuple[str, str, float | None, float | None, int], ...] = (
    ("cpuCFSQuotaPeriod", "cpu-cfs-quota-period", None, 1, 0),
    ("cpuCFSQuotaPeriod", "cpu-cfs-quota-period", 0.001, None, 28),
    ("containerLogMonitorInterval", "", 3, None, 30),
    ("imageMaximumGCAge", "", 0, None, 29),
    ("crashLoopBackOff.maxContainerRestartPeriod", "", 1, 300, 35),
)
# Field, the feature gate without which it may not be set, values that set nothing.
GATED: tuple[tuple[str, str, tuple[Any, ...]], ...] = (
    ("memorySwap.swapBehavior", "NodeSwap", ("",)),
    ("crashLoopBackOff.maxContainerRestartPeriod", "KubeletCrashLoopBackOffMax", ()),
    ("imageMaximumGCAge", "ImageMaximumGCAge", ("0s",)),
    ("imagePullCredentialsVerificationPolicy", "KubeletEnsureSecretPulledImages", ("",)),
    ("enableSystemLogQuery", "NodeLogQuery", (False,)),
    ("memoryReservationPolicy", "MemoryQoS", ("", "None")),
)
# Field, flag, what it takes, first minor with that. "" stands for the default.
CHOICES: tuple[tuple[str, str, tuple[str, ...], int], ...] = (
    ("topologyManagerPolicy", "topology-manager-policy", ("none", "best-effort", "restricted", "single-numa-node"), 0),
    ("topologyManagerScope", "topology-manager-scope", ("container", "pod"), 0),
    ("hairpinMode", "hairpin-mode", ("promiscuous-bridge", "hairpin-veth", "none"), 0),
    ("cpuManagerPolicy", "cpu-manager-policy", ("none", "static"), 0),
    ("memoryManagerPolicy", "memory-manager-policy", ("None", "Static"), 0),
    ("configMapAndSecretChangeDetectionStrategy", "", ("Get", "Cache", "Watch"), 0),
    ("authorization.mode", "authorization-mode", ("AlwaysAllow", "Webhook"), 0),
    ("logging.format", "logging-format", ("text", "json"), 0),
    ("memorySwap.swapBehavior", "", ("LimitedSwap", "UnlimitedSwap", "NoSwap"), 0),
    ("memorySwap.swapBehavior", "", ("LimitedSwap", "NoSwap"), 30),
    ("memoryReservationPolicy", "", ("None", "TieredReservation"), 36),
)
# Eviction signal, first minor.
SIGNALS = {
    "memory.available": 0,
    "allocatableMemory.available": 0,
    "nodefs.available": 0,
    "nodefs.inodesFree": 0,
    "imagefs.available": 0,
    "imagefs.inodesFree": 0,
    "pid.available": 0,
    "containerfs.available": 29,
    "containerfs.inodesFree": 29,
}
EVICTION = {
    "evictionHard": "eviction-hard",
    "evictionSoft": "eviction-soft",
    "evictionSoftGracePeriod": "eviction-soft-grace-period",
    "evictionMinimumReclaim": "eviction-minimum-reclaim",
}
RESERVED = {"kubeReserved": "kube-reserved", "systemReserved": "system-reserved"}
RESOURCES = ("cpu", "memory", "ephemeral-storage", "pid")
COMPRESSIBLE_SINCE = 32
# What enforceNodeAllocatable may name, and the cgroup that each needs.
ENFORCED = {
    "none": ("", ""),
    "pods": ("", ""),
    "system-reserved": ("systemReservedCgroup", "system-reserved-cgroup"),
    "kube-reserved": ("kubeReservedCgroup", "kube-reserved-cgroup"),
    "system-reserved-compressible": ("systemReservedCgroup", "system-reserved-cgroup"),
    "kube-reserved-compressible": ("kubeReservedCgroup", "kube-reserved-cgroup"),
}
EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
NAMESPACED = ("kernel.shm", "kernel.msg", "kernel.sem", "kernel.domainname", "fs.mqueue.", "net.", "user.")
UNITS = {"ns": 1e-9, "us": 1e-6, "\u00b5s": 1e-6, "\u03bcs": 1e-6, "ms": 1e-3, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True, slots=True)
class Settings:
    """What the kubelet is given, with the types of the configuration file; None where a value has another type."""

    kubelet: Kubelet
    minors: Minors

    def since(self, minor: int) -> bool:
        return self.minors[0] >= minor

    def value(self, field: str, flag: str = "") -> tuple[Any, Evidence]:
        return self.kubelet.setting(flag, *field.split("."))

    def number(self, field: str, flag: str = "", default: float | None = None) -> tuple[float | None, Evidence]:
        value, at = self.value(field, flag)
        if isinstance(value, str) and re.fullmatch(r"-?\d{1,18}", value) and self.kubelet.flag(flag):
            value = int(value)
        fits = isinstance(value, int | float) and not isinstance(value, bool)
        return (default if value is None else value if fits else None), at

    def seconds(self, field: str, flag: str = "", default: float | None = None) -> tuple[float | None, Evidence]:
        value, at = self.value(field, flag)
        return (default if value is None else seconds(value)), at

    def truth(self, field: str, flag: str, *, default: bool) -> tuple[bool, Evidence]:
        value, at = self.value(field, flag)
        return (default if value is None else str(value).lower() in {"true", "t", "1"}), at

    def text(self, field: str, flag: str = "") -> tuple[str, Evidence]:
        value, at = self.value(field, flag)
        return (value if isinstance(value, str) else ""), at

    def words(self, field: str, flag: str) -> tuple[list[str], Evidence]:
        value, at = self.value(field, flag)
        listed = value.split(",") if isinstance(value, str) else value if isinstance(value, list) else []
        return [word for word in listed if isinstance(word, str) and word], at

    def mapping(self, field: str, flag: str) -> dict[str, tuple[str, Evidence]]:
        """Drop-ins add to the file's entries; flags (`a=1,b=2`, eviction's `a<1,b<2`) add up, and take the place of all
        but feature gates, which are merged.
        """
        by_flag: dict[str, tuple[str, Evidence]] = {}
        for given in self.kubelet.flags:
            for pair in given.value.split(",") if given.name == flag else ():
                name, *value = re.split("[=<]", pair, maxsplit=1)
                if name.strip():
                    by_flag[name.strip()] = (value[0].strip() if value else name.strip(), given.evidence)
        if by_flag and flag != "feature-gates":
            return by_flag
        found: dict[str, tuple[str, Evidence]] = {}
        for document in (*([self.kubelet.config] if self.kubelet.config else []), *self.kubelet.drop_ins):
            entries = document.get(field)
            for name, value in entries.items() if isinstance(entries, dict) else ():
                if value is not None:
                    found[str(name)] = (str(value), document.evidence(field, name))
        return found | by_flag

    def gate(self, name: str) -> bool | None:
        """Whether a feature gate is on; None where the releases differ, or AllAlpha or AllBeta decides."""
        given = {key: value for key, (value, _) in self.mapping("featureGates", "feature-gates").items()}
        if name in given:
            return given[name].lower() in {"true", "t", "1"}
        if given.keys() & {"AllAlpha", "AllBeta"}:
            return None
        gates = (tables.gate(name, (1, minor)) for minor in self.minors)
        defaults = {gate.default if gate else None for gate in gates}
        return defaults.pop() if len(defaults) == 1 else None


def refused_values(kubelet: Kubelet, minors: Minors) -> Iterator[Refused]:
    """Title and lines of each value, in the words of its field."""
    settings = Settings(kubelet, minors)
    for rule in (
        _ranges,
        _choices,
        _images,
        _gated,
        _node_allocatable,
        _shutdown,
        _eviction,
        _reserved,
        _managers,
        _names,
    ):
        yield from rule(settings)


def seconds(value: Any) -> float | None:
    """Of a Go duration such as 1m30s; None for what is none."""
    if not isinstance(value, str) or not re.fullmatch(
        r"[+-]?(0|((\d+\.?\d*|\.\d+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h))+)", value
    ):
        return None
    parts = re.findall(r"([\d.]+)(ns|us|\u00b5s|\u03bcs|ms|s|m|h)", value)
    total = sum(float(number) * UNITS[unit] for number, unit in parts)
    return -total if value.startswith("-") else total


def _ranges(settings: Settings) -> Iterator[Refused]:
    for rules, read, unit in ((RANGES, settings.number, ""), (DURATIONS, settings.seconds, "s")):
        for field, flag, least, most, since in rules:
            value, at = read(field, flag)
            if value is None or not settings.since(since):
                continue
            if least is not None and value < least:
                yield f"{field} must be at least {least:g}{unit}", (at,)
            if most is not None and value > most:
                yield f"{field} must be at most {most:g}{unit}", (at,)


def _choices(settings: Settings) -> Iterator[Refused]:
    told = set()
    for field, flag, choices, since in CHOICES:
        value, at = settings.text(field, flag)
        if value and value not in choices and settings.since(since) and field not in told:
            told.add(field)
            yield f"{field} is {value!r}, and must be one of {', '.join(choices)}", (at,)
    taints, _ = settings.value("registerWithTaints", "register-with-taints")
    for index, taint in enumerate(taints if isinstance(taints, list) else ()):
        effect = taint.get("effect") if isinstance(taint, dict) else None
        if effect and effect not in EFFECTS:
            _, at = settings.kubelet.setting("", "registerWithTaints", index, "effect")
            yield f"the effect of a taint is {effect!r}, and must be one of {', '.join(EFFECTS)}", (at,)
    once, at = settings.truth("runOnce", "runonce", default=False)
    if once and settings.since(32):
        yield "runOnce is refused since 1.32", (at,)


def _images(settings: Settings) -> Iterator[Refused]:
    low, low_at = settings.number("imageGCLowThresholdPercent", "image-gc-low-threshold", 80)
    high, high_at = settings.number("imageGCHighThresholdPercent", "image-gc-high-threshold", 85)
    if low is not None and high is not None and 0 <= low <= 100 and 0 <= high <= 100 and low >= high:
        lines = tuple(at for at in (low_at, high_at) if at.line is not None)
        yield f"imageGCLowThresholdPercent ({low}) must be below imageGCHighThresholdPercent ({high})", lines
    parallel, at = settings.number("maxParallelImagePulls")
    serial, serial_at = settings.truth("serializeImagePulls", "serialize-image-pulls", default=False)
    if settings.since(27) and parallel is not None and parallel > 1 and serial:
        yield "maxParallelImagePulls above 1 needs serializeImagePulls: false", (at, serial_at)
    oldest, at = settings.seconds("imageMaximumGCAge")
    youngest, _ = settings.seconds("imageMinimumGCAge", "minimum-image-ttl-duration", 120)
    youngest = 120 if youngest == 0 else youngest
    if settings.since(29) and oldest and youngest is not None and 0 < oldest <= youngest:
        yield f"imageMaximumGCAge must be above imageMinimumGCAge ({youngest:g}s)", (at,)


def _gated(settings: Settings) -> Iterator[Refused]:
    for field, gate, unset in GATED:
        value, at = settings.value(field)
        if value is not None and value not in unset and settings.gate(gate) is False:
            yield f"{field} needs the feature gate {gate}", (at,)


def _node_allocatable(settings: Settings) -> Iterator[Refused]:
    enforced, at = settings.words("enforceNodeAllocatable", "enforce-node-allocatable")
    for name in dict.fromkeys(enforced):
        field, flag = ENFORCED.get(name, ("", ""))
        compressible = name.endswith("-compressible") and settings.minors[-1] < COMPRESSIBLE_SINCE
        if name not in ENFORCED or compressible:
            yield f"enforceNodeAllocatable does not take {name!r}", (at,)
        elif field and not settings.value(field, flag)[0]:
            yield f"{name} in enforceNodeAllocatable needs {field}", (at,)
        if name.endswith("-reserved") and f"{name}-compressible" in enforced:
            yield f"enforceNodeAllocatable may not name both {name} and {name}-compressible", (at,)
        if enforced.count(name) > 1 and settings.since(31):
            yield f"enforceNodeAllocatable names {name} twice", (at,)
    if "none" in enforced and len(enforced) > 1:
        yield "enforceNodeAllocatable may name nothing beside none", (at,)
    per_qos, per_qos_at = settings.truth("cgroupsPerQOS", "cgroups-per-qos", default=True)
    unset = settings.value("enforceNodeAllocatable", "enforce-node-allocatable")[0] is None  # then it is [pods]
    if not per_qos and (unset or set(enforced) - {"none"}):
        yield "cgroupsPerQOS: false needs enforceNodeAllocatable: []", (per_qos_at, at)
    cpus, at = settings.value("reservedSystemCPUs", "reserved-cpus")
    for field, flag in dict.fromkeys(pair for pair in ENFORCED.values() if pair[0]):
        group, group_at = settings.value(field, flag)
        if cpus and group:
            yield f"reservedSystemCPUs and {field} exclude each other", (at, group_at)
    group, at = settings.value("systemCgroups", "system-cgroups")
    if group and not settings.value("cgroupRoot", "cgroup-root")[0]:
        yield "systemCgroups needs cgroupRoot", (at,)


def _shutdown(settings: Settings) -> Iterator[Refused]:
    whole, whole_at = settings.seconds("shutdownGracePeriod", "", 0)
    critical, critical_at = settings.seconds("shutdownGracePeriodCriticalPods", "", 0)
    if whole is None or critical is None or settings.gate("GracefulNodeShutdown") is not True:
        return
    if critical > whole:
        yield "shutdownGracePeriodCriticalPods may not be above shutdownGracePeriod", (critical_at,)
    for field, value, at in (("", whole, whole_at), ("CriticalPods", critical, critical_at)):
        if value < 0 or 0 < value < 1:
            yield f"shutdownGracePeriod{field} must be 0 or at least 1s", (at,)
    by_priority, at = settings.value("shutdownGracePeriodByPodPriority")
    if by_priority and whole > 0 and settings.gate("GracefulNodeShutdownBasedOnPodPriority"):
        yield "shutdownGracePeriodByPodPriority and shutdownGracePeriod exclude each other", (at, whole_at)


def _eviction(settings: Settings) -> Iterator[Refused]:
    entries = {field: settings.mapping(field, flag) for field, flag in EVICTION.items()}
    for field, thresholds in entries.items():
        for signal, (value, at) in thresholds.items():
            if signal not in SIGNALS or settings.minors[-1] < SIGNALS[signal]:
                yield f"{field} has no signal {signal!r}", (at,)
            elif field == "evictionSoftGracePeriod":
                if (seconds(value) or 0) < 0 or seconds(value) is None:
                    yield f"{field} of {signal} must be a duration such as 1m30s", (at,)
            elif not _threshold(value, field):
                yield (
                    f"{field} of {signal} is {value!r}, which is neither a quantity such as 200Mi nor a percentage",
                    (at,),
                )
    for signal, (value, at) in entries["evictionSoft"].items():
        if signal in SIGNALS and value not in {"0%", "100%"} and signal not in entries["evictionSoftGracePeriod"]:
            yield f"evictionSoft of {signal} needs a period in evictionSoftGracePeriod", (at,)


def _threshold(value: str, field: str) -> bool:
    reclaim = field == "evictionMinimumReclaim"
    if value.endswith("%"):
        try:
            share = float(value.rstrip("%"))
        except ValueError:
            return False
        return share > 0 if reclaim else 0 <= share <= 100
    amount = quantity(value)
    return amount is not None and (amount > 0 or (amount == 0 and reclaim))


def _reserved(settings: Settings) -> Iterator[Refused]:
    for field, flag in RESERVED.items():
        for name, (value, at) in settings.mapping(field, flag).items():
            amount = quantity(value)
            if name not in RESOURCES:
                yield f"{field} takes {', '.join(RESOURCES)}, and not {name!r}", (at,)
            elif amount is None or amount < 0:
                yield f"{field} of {name} is {value!r}, which is no quantity such as 500m or 1Gi", (at,)
    size, at = settings.text("containerLogMaxSize", "container-log-max-size")
    if size and quantity(size) is None:
        yield f"containerLogMaxSize is {size!r}, which is no quantity such as 10Mi", (at,)


def _managers(settings: Settings) -> Iterator[Refused]:
    policy, at = settings.text("cpuManagerPolicy", "cpu-manager-policy")
    if (
        policy == "static"
        and settings.gate("CPUManager") is not False
        and not settings.value("reservedSystemCPUs", "reserved-cpus")[0]
    ):
        values = [settings.mapping(field, flag).get("cpu") for field, flag in RESERVED.items()]
        if not any(value and quantity(value[0]) != 0 for value in values):
            yield "cpuManagerPolicy static needs cpu in kubeReserved or systemReserved, or reservedSystemCPUs", (at,)
    policy, at = settings.text("memoryManagerPolicy", "memory-manager-policy")
    reserved, _ = settings.value("reservedMemory", "reserved-memory")
    if policy == "Static" and settings.gate("MemoryManager") is not False and not reserved:
        yield "memoryManagerPolicy Static needs reservedMemory", (at,)


def _names(settings: Settings) -> Iterator[Refused]:
    sysctls, at = settings.words("allowedUnsafeSysctls", "allowed-unsafe-sysctls")
    for name in sysctls:
        if not name.replace("/", ".").startswith(NAMESPACED):
            yield f"allowedUnsafeSysctls has {name}, which no namespace holds", (at,)
    place, at = settings.text("podLogsDir")
    if settings.since(30) and place.startswith("/") and place != posixpath.normpath(place):
        yield f"podLogsDir must be a clean path such as {posixpath.normpath(place)}, and is {place}", (at,)
