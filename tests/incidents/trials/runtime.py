"""The container runtime and the kubelet's way to it."""

from __future__ import annotations

from tests.incidents.trials.changes import (
    CFG,
    TOML,
    UNKNOWN,
    V3,
    kargs,
    setting,
)
from tests.incidents.trials.trial import Copy, Trials

TRIALS = Trials()
on = TRIALS.on


@on(
    "kubelet-cgroup-driver-mismatch",
    "single-1.34 single-1.37 ha-vip-cp1-1.37 external-etcd-1.36",
    "cgroup-driver-mismatch",
)
def false(t: Copy) -> None:
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")


@on("kubelet-cgroup-driver-mismatch", "single-1.36 ha-dns-cp1-1.36", "cgroup-driver-mismatch")
def absent(t: Copy) -> None:
    t.sub(TOML, r"\n\s*SystemdCgroup = true", "")


@on("kubelet-cgroup-driver-mismatch", "single-1.34 single-1.37", "cgroup-driver-mismatch")
def kubelet_cgroupfs(t: Copy) -> None:
    setting(t, "cgroupDriver", "cgroupfs")


@on("kubelet-cgroup-driver-mismatch", "single-1.37", "cgroup-driver-mismatch")
def with_journal(t: Copy) -> None:
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 kuberuntime_manager.go:1050] "Pod sandbox changed, it will be killed and re-created" pod="kube-system/etcd-cp-1"',
    )


@on("kubelet-cgroup-driver-mismatch", "single-1.36", "cgroup-driver-mismatch")
def crio(t: Copy) -> None:
    t.remove("/etc/containerd")
    t.write("/etc/crio/crio.conf", '[crio.runtime]\ncgroup_manager = "cgroupfs"\n')
    t.replace(CFG, "/var/run/containerd/containerd.sock", "/var/run/crio/crio.sock")
    t.write("/var/lib/kubelet/instance-config.yaml", 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n')


@on("cgroup-driver-sandbox-changed-jammy", "single-1.37 single-1.34 ha-vip-cp2-1.37", "cgroup-driver-mismatch")
def no_version(t: Copy) -> None:
    t.replace(TOML, "version = 2\n", "")


@on("cgroup-driver-sandbox-changed-jammy", "single-1.36 ha-dns-cp1-1.36", "cgroup-driver-mismatch")
def v1_table(t: Copy) -> None:
    t.write(
        TOML,
        '[plugins]\n  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n    SystemdCgroup = true\n',
    )
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 kuberuntime_manager.go:1050] "Pod sandbox changed, it will be killed and re-created." pod="kube-system/etcd-cp-1"',
    )


@on("cgroup-driver-sandbox-changed-jammy", "single-1.37", "cgroup-driver-mismatch")
def proc_cgroup(t: Copy) -> None:
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")
    t.write(
        "/proc/3112/cgroup",
        "0::/system.slice/kubepods-burstable-pod0b68508595b81a1be441ed783418fcff.slice:cri-containerd:ba1985ba8c0c8adfec36c1082a672d56614a13340eb3910dd901ef10e354be9b\n",
    )
    t.write("/proc/3112/comm", "etcd\n")


@on("cgroup-driver-sandbox-changed-jammy", "single-1.34", "cgroup-driver-mismatch")
def minimal(t: Copy) -> None:
    t.write(TOML, "")


@on("kubelet-cgroup-driver-mismatch trap", "single-1.37 single-1.34", "")
def v3_false(t: Copy) -> None:
    t.write(TOML, V3 % "false")


@on("healthy: containerd v3", "single-1.37 single-1.34 external-etcd-1.36", "")
def v3(t: Copy) -> None:
    t.write(TOML, V3 % "true")
    t.write("/drtool/versions.json", '{"kubelet": null, "containerd": "2.1.4", "crio": null}')


@on("healthy: containerd imports", "single-1.37 ha-vip-cp1-1.37", "")
def imports(t: Copy) -> None:
    t.write(TOML, 'version = 2\nimports = ["/etc/containerd/conf.d/*.toml"]\n')
    t.write(
        "/etc/containerd/conf.d/cgroup.toml",
        'version = 2\n[plugins."io.containerd.grpc.v1.cri"]\n  sandbox_image = "registry.k8s.io/pause:3.10.1"\n[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc]\n  runtime_type = "io.containerd.runc.v2"\n  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]\n    SystemdCgroup = true\n',
    )


@on("healthy: containerd imports", "single-1.34", "")
def imports_elsewhere(t: Copy) -> None:
    text = t.read(TOML)
    t.write(TOML, 'version = 2\nimports = ["config.d/*.toml"]\n')
    t.write("/etc/containerd/config.d/cri.toml", text)
    t.write("/drtool/versions.json", '{"kubelet": null, "containerd": "1.7.27", "crio": null}')


@on("kubelet-cgroup-driver-mismatch: imports", "single-1.34", "cgroup-driver-mismatch")
def not_imported(t: Copy) -> None:
    t.write("/etc/containerd/conf.d/cgroup.toml", t.read(TOML))
    t.replace(TOML, "SystemdCgroup = true", "SystemdCgroup = false")


@on("kubelet-unknown-service-three-roots: imports", "single-1.37", "containerd-cri-disabled")
def cri_disabled_by_an_import(t: Copy) -> None:
    t.replace(TOML, "version = 2\n", 'version = 2\nimports = ["/etc/containerd/config.d/*.toml"]\n')
    t.write("/etc/containerd/config.d/docker.toml", 'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    t.unit("kubelet", UNKNOWN)


@on("healthy: CRI-O", "single-1.37 external-etcd-1.36 ha-dns-cp1-1.36", "")
def crio_ok(t: Copy) -> None:
    t.remove("/etc/containerd")
    t.write("/etc/crio/crio.conf", '[crio.runtime]\ncgroup_manager = "systemd"\n')
    t.write("/var/lib/kubelet/instance-config.yaml", 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n')
    t.replace(CFG, "/var/run/containerd/containerd.sock", "/var/run/crio/crio.sock")


@on("healthy: CRI-O", "single-1.34", "")
def crio_default(t: Copy) -> None:
    t.remove("/etc/containerd")
    t.write("/etc/crio/crio.conf.d/10-crio.conf", '[crio.runtime]\ndefault_runtime = "crun"\n')
    t.write("/var/lib/kubelet/instance-config.yaml", 'containerRuntimeEndpoint: "unix:///var/run/crio/crio.sock"\n')
    t.replace(CFG, "/var/run/containerd/containerd.sock", "/var/run/crio/crio.sock")


@on("dockershim-socket-after-1.24", "single-1.34 single-1.37 ha-vip-cp1-1.37", "runtime-endpoint-wrong")
def in_config(t: Copy) -> None:
    t.replace(CFG, "unix:///var/run/containerd/containerd.sock", "unix:///var/run/dockershim.sock")
    t.write("/var/lib/kubelet/instance-config.yaml", 'containerRuntimeEndpoint: "unix:///var/run/dockershim.sock"\n')


@on("dockershim-socket-after-1.24", "single-1.34 external-etcd-1.36 single-1.36", "runtime-endpoint-wrong")
def in_env(t: Copy) -> None:
    t.sub(CFG, r"containerRuntimeEndpoint: .*\n", "")
    t.remove("/var/lib/kubelet/instance-config.yaml")
    kargs(t, "--container-runtime-endpoint=unix:///var/run/dockershim.sock")
    t.unit(
        "kubelet",
        'E1214 22:50:00.000000     812 run.go:74] "command failed" err="failed to run Kubelet: validate service connection: validate CRI v1 runtime API for endpoint \\"unix:///var/run/dockershim.sock\\": rpc error: code = Unavailable desc = connection error: desc = \\"transport: Error while dialing: dial unix /var/run/dockershim.sock: connect: no such file or directory\\""',
    )


@on(
    "cri-socket-annotation-wrong-or-two-runtimes",
    "single-1.37 ha-dns-cp1-1.36",
    "cri-socket-annotation",
    "runtime-endpoint-wrong",
)
def doubled(t: Copy) -> None:
    t.replace(CFG, "unix:///var/run", "unix://unix:///var/run")
    t.replace("/var/lib/kubelet/instance-config.yaml", "unix:///var/run", "unix://unix:///var/run")


@on("cri-socket-annotation-wrong-or-two-runtimes", "single-1.34", "cri-socket-annotation", "runtime-endpoint-wrong")
def other_runtime(t: Copy) -> None:
    t.replace(CFG, "containerd/containerd.sock", "crio/crio.sock")
    t.replace("/var/lib/kubelet/instance-config.yaml", "containerd/containerd.sock", "crio/crio.sock")


@on("cri-socket-annotation-wrong-or-two-runtimes trap", "single-1.37", "")
def two_sockets(t: Copy) -> None:
    t.write("/run/crio/crio.sock", "")
    t.write("/run/containerd/containerd.sock", "")


@on("kubelet-unknown-service-three-roots", "single-1.37 single-1.34 external-etcd-1.36", "containerd-cri-disabled")
def cri_disabled(t: Copy) -> None:
    t.write(TOML, 'disabled_plugins = ["cri"]\n' + t.read(TOML).replace("version = 2\n", ""))
    t.unit("kubelet", UNKNOWN)


@on("kubelet-unknown-service-three-roots", "ha-vip-cp1-1.37", "containerd-cri-disabled")
def cri_disabled_v2(t: Copy) -> None:
    t.replace(TOML, "version = 2\n", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')
    t.unit("kubelet", UNKNOWN)


@on("kubelet-unknown-service-three-roots", "ha-vip-cp2-1.37", "containerd-cri-disabled")
def docker_default(t: Copy) -> None:
    t.write(TOML, 'disabled_plugins = ["cri"]\n')


@on("kubelet-unknown-service-three-roots", "single-1.36 ha-dns-cp1-1.36", "containerd-config-conflict")
def mirrors(t: Copy) -> None:
    t.append(
        TOML,
        '    [plugins."io.containerd.grpc.v1.cri".registry]\n      config_path = "/etc/containerd/certs.d"\n      [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\n        endpoint = ["https://mirror.example.org"]\n',
    )
    t.unit("kubelet", UNKNOWN)
    t.append(
        "/drtool/journal/containerd.log",
        'time="2026-12-14T22:50:00Z" level=warning msg="failed to load plugin io.containerd.grpc.v1.cri" error="invalid plugin config: `mirrors` cannot be set when `config_path` is provided"\n',
    )


@on("kubelet-unknown-service-three-roots", "single-1.34", "containerd-config-conflict")
def mirrors_quiet(t: Copy) -> None:
    t.append(
        TOML,
        '    [plugins."io.containerd.grpc.v1.cri".registry]\n      config_path = "/etc/containerd/certs.d"\n      [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]\n        endpoint = ["https://mirror.example.org"]\n',
    )


@on("kubelet-unknown-service-three-roots", "single-1.37 external-etcd-1.36", "containerd-too-old")
def too_old(t: Copy) -> None:
    t.write("/drtool/versions.json", '{"kubelet": null, "containerd": "1.5.9", "crio": null}')
    t.unit("kubelet", UNKNOWN)


@on("kubelet-unknown-service-three-roots", "single-1.36", "runtime-endpoint-wrong")
def endpoint(t: Copy) -> None:
    t.replace(CFG, "containerd/containerd.sock", "docker.sock")
    t.write("/var/lib/kubelet/instance-config.yaml", 'containerRuntimeEndpoint: "unix:///var/run/docker.sock"\n')
    t.unit("kubelet", UNKNOWN.replace("containerd/containerd.sock", "docker.sock"))
