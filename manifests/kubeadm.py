"""Lays the files of a control-plane node as kubeadm does, below any directory.

For scratch clusters (demo, rehearsals) and tests: manifests, PKI with its SANs, kubeconfigs, the kubelet's
configuration and the kernel's files that say which address the host has. The tests compare it with the real kubeadm's.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from ipaddress import ip_address
from pathlib import Path

import yaml

from manifests.pki.expected import AUTHORITIES, KUBECONFIGS, LEAVES, ClientConfig, Leaf, apiserver_names, etcd_names
from manifests.pki.issuing import Issued, issue, issue_authority, new_key, private_pem, public_pem

PKI = "/etc/kubernetes/pki"
PRIORITY = 2000001000


@dataclass(frozen=True)
class Design:
    """What kubeadm is told. `members` is etcd's initial cluster, name to address; this node alone where empty.

    `endpoint` is controlPlaneEndpoint (HOST:PORT, "" for none). `ports` moves etcd's client, peer and metrics ports,
    for scratch clusters that share one host.
    """

    name: str = "cp-1"
    address: str = "192.0.2.111"
    endpoint: str = ""
    kubernetes: str = "v1.37.2"
    etcd: str = "3.7.0-0"
    pods: str = "10.244.0.0/16"
    services: str = "10.96.0.0/12"
    members: Mapping[str, str] = field(default_factory=dict)
    ports: tuple[int, int, int] = (2379, 2380, 2381)
    algorithm: str = "ECDSA-P256"

    @property
    def host(self) -> str:
        return f"[{self.address}]" if ":" in self.address else self.address

    @property
    def server(self) -> str:
        return f"https://{self.endpoint or f'{self.host}:6443'}"


def lay(root: Path, design: Design, now: datetime, shared: Mapping[str, Issued] | None = None) -> dict[str, Issued]:
    """Writes the node's files below `root` and returns its CAs, to be shared with the next node of the cluster."""
    authorities = dict(shared or {})
    for authority in AUTHORITIES:
        if authority.path not in authorities:
            authorities[authority.path] = issue_authority(authority.common_name, now, new_key(design.algorithm))
        _write_pair(root, authority.path, authorities[authority.path])
    if "sa" not in authorities:
        authorities["sa"] = issue_authority("sa", now, new_key(design.algorithm))
    _write(root, f"{PKI}/sa.key", private_pem(authorities["sa"].key), 0o600)
    _write(root, f"{PKI}/sa.pub", public_pem(authorities["sa"].key), 0o600)
    for leaf in LEAVES:
        _write_pair(root, leaf.path, _issue_leaf(leaf, design, authorities, now))
    for config in KUBECONFIGS:
        _write_kubeconfig(root, config, design, authorities["ca"], now)
    for name, pod in manifests(design).items():
        _write(root, f"/etc/kubernetes/manifests/{name}.yaml", _yaml(pod), 0o600)
    for path, text in _host_files(design).items():
        _write(root, path, text.encode(), 0o644)
    (root / "var/lib/etcd").mkdir(parents=True, exist_ok=True, mode=0o700)
    return authorities


def _issue_leaf(leaf: Leaf, design: Design, authorities: Mapping[str, Issued], now: datetime) -> Issued:
    names: tuple[str, ...] = ()
    if leaf.names == "apiserver":
        endpoint = design.endpoint.rpartition(":")[0]
        names = apiserver_names(design.name, design.address, design.services, endpoint=endpoint)
    elif leaf.names == "etcd":
        names = etcd_names(design.name, design.address)
    key = new_key(design.algorithm)
    name = leaf.common_name or design.name
    return issue(authorities[leaf.authority], name, leaf.usages, now, key, leaf.organizations, names)


def _write_kubeconfig(root: Path, config: ClientConfig, design: Design, ca: Issued, now: datetime) -> None:
    user = config.common_name + (design.name if config.name == "kubelet.conf" else "")
    client = issue(ca, user, ("clientAuth",), now, new_key(design.algorithm), config.organizations)
    credential: dict[str, str] = {
        "client-certificate-data": base64.b64encode(client.certificate_pem).decode(),
        "client-key-data": base64.b64encode(client.key_pem).decode(),
    }
    if config.name == "kubelet.conf":
        current = "/var/lib/kubelet/pki/kubelet-client-current.pem"
        credential = {"client-certificate": current, "client-key": current}
        dated = f"/var/lib/kubelet/pki/kubelet-client-{now:%Y-%m-%d-%H-%M-%S}.pem"
        _write(root, dated, client.certificate_pem + client.key_pem, 0o600)
        link = root / current.lstrip("/")
        link.unlink(missing_ok=True)
        link.symlink_to(dated)
    server = f"https://{design.host}:6443" if config.local else design.server
    cluster = {"certificate-authority-data": base64.b64encode(ca.certificate_pem).decode(), "server": server}
    document = {
        "apiVersion": "v1",
        "clusters": [{"cluster": cluster, "name": "kubernetes"}],
        "contexts": [{"context": {"cluster": "kubernetes", "user": user}, "name": f"{user}@kubernetes"}],
        "current-context": f"{user}@kubernetes",
        "kind": "Config",
        "users": [{"name": user, "user": credential}],
    }
    _write(root, f"/etc/kubernetes/{config.name}", _yaml(document), 0o600)


def manifests(design: Design) -> dict[str, dict[str, object]]:
    """The four static Pods by file name, flags in kubeadm's own (alphabetical) order."""
    client, peer, metrics = design.ports
    members = design.members or {design.name: design.address}
    cluster = ",".join(f"{name}=https://{_host(a)}:{peer}" for name, a in members.items())
    etcd_flags = {
        "advertise-client-urls": f"https://{design.host}:{client}",
        "cert-file": f"{PKI}/etcd/server.crt",
        "client-cert-auth": "true",
        "data-dir": "/var/lib/etcd",
        "initial-advertise-peer-urls": f"https://{design.host}:{peer}",
        "initial-cluster": cluster,
        **({"initial-cluster-state": "existing"} if design.name != next(iter(members)) else {}),
        "key-file": f"{PKI}/etcd/server.key",
        "listen-client-urls": f"https://127.0.0.1:{client},https://{design.host}:{client}",
        "listen-metrics-urls": f"http://127.0.0.1:{metrics}",
        "listen-peer-urls": f"https://{design.host}:{peer}",
        "name": design.name,
        "peer-cert-file": f"{PKI}/etcd/peer.crt",
        "peer-client-cert-auth": "true",
        "peer-key-file": f"{PKI}/etcd/peer.key",
        "peer-trusted-ca-file": f"{PKI}/etcd/ca.crt",
        "snapshot-count": "10000",
        "trusted-ca-file": f"{PKI}/etcd/ca.crt",
    }
    apiserver_flags = {
        "advertise-address": design.address,
        "allow-privileged": "true",
        "authorization-mode": "Node,RBAC",
        "client-ca-file": f"{PKI}/ca.crt",
        "enable-admission-plugins": "NodeRestriction",
        "enable-bootstrap-token-auth": "true",
        "etcd-cafile": f"{PKI}/etcd/ca.crt",
        "etcd-certfile": f"{PKI}/apiserver-etcd-client.crt",
        "etcd-keyfile": f"{PKI}/apiserver-etcd-client.key",
        "etcd-servers": f"https://127.0.0.1:{client}",
        "kubelet-client-certificate": f"{PKI}/apiserver-kubelet-client.crt",
        "kubelet-client-key": f"{PKI}/apiserver-kubelet-client.key",
        "proxy-client-cert-file": f"{PKI}/front-proxy-client.crt",
        "proxy-client-key-file": f"{PKI}/front-proxy-client.key",
        "requestheader-allowed-names": "front-proxy-client",
        "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "secure-port": "6443",
        "service-account-issuer": "https://kubernetes.default.svc.cluster.local",
        "service-account-key-file": f"{PKI}/sa.pub",
        "service-account-signing-key-file": f"{PKI}/sa.key",
        "service-cluster-ip-range": design.services,
        "tls-cert-file": f"{PKI}/apiserver.crt",
        "tls-private-key-file": f"{PKI}/apiserver.key",
    }
    controller_flags = {
        "allocate-node-cidrs": "true",
        "authentication-kubeconfig": "/etc/kubernetes/controller-manager.conf",
        "authorization-kubeconfig": "/etc/kubernetes/controller-manager.conf",
        "bind-address": "127.0.0.1",
        "client-ca-file": f"{PKI}/ca.crt",
        "cluster-cidr": design.pods,
        "cluster-name": "kubernetes",
        "cluster-signing-cert-file": f"{PKI}/ca.crt",
        "cluster-signing-key-file": f"{PKI}/ca.key",
        "kubeconfig": "/etc/kubernetes/controller-manager.conf",
        "leader-elect": "true",
        "requestheader-client-ca-file": f"{PKI}/front-proxy-ca.crt",
        "root-ca-file": f"{PKI}/ca.crt",
        "service-account-private-key-file": f"{PKI}/sa.key",
        "service-cluster-ip-range": design.services,
        "use-service-account-credentials": "true",
    }
    scheduler_flags = {
        "authentication-kubeconfig": "/etc/kubernetes/scheduler.conf",
        "authorization-kubeconfig": "/etc/kubernetes/scheduler.conf",
        "bind-address": "127.0.0.1",
        "kubeconfig": "/etc/kubernetes/scheduler.conf",
        "leader-elect": "true",
    }
    pki, certs = ("k8s-certs", PKI, "DirectoryOrCreate"), ("ca-certs", "/etc/ssl/certs", "DirectoryOrCreate")
    own = ("etcd-certs", f"{PKI}/etcd", "DirectoryOrCreate")
    data = ("etcd-data", "/var/lib/etcd", "DirectoryOrCreate")
    kubeconfig = ("kubeconfig", "/etc/kubernetes/{}.conf", "FileOrCreate")
    image = f"registry.k8s.io/{{}}:{design.kubernetes}"
    return {
        "etcd": _pod(
            "etcd", f"registry.k8s.io/etcd:{design.etcd}", etcd_flags, ("127.0.0.1", metrics, "HTTP"), [data, own]
        ),
        "kube-apiserver": _pod("kube-apiserver", image, apiserver_flags, (design.address, 6443, "HTTPS"), [certs, pki]),
        "kube-controller-manager": _pod(
            "kube-controller-manager", image, controller_flags, ("127.0.0.1", 10257, "HTTPS"), [certs, pki, kubeconfig]
        ),
        "kube-scheduler": _pod("kube-scheduler", image, scheduler_flags, ("127.0.0.1", 10259, "HTTPS"), [kubeconfig]),
    }


def _pod(
    name: str, image: str, flags: Mapping[str, str], probe: tuple[str, int, str], mounts: list[tuple[str, str, str]]
) -> dict[str, object]:
    host, port, scheme = probe
    mounts = [(volume, path.format(name.removeprefix("kube-")), kind) for volume, path, kind in mounts]
    check = {"host": host, "path": "/livez", "port": "probe-port", "scheme": scheme}
    container: dict[str, object] = {
        "command": [name, *(f"--{flag}={value}" for flag, value in flags.items())],
        "image": image.format(name),
        "imagePullPolicy": "IfNotPresent",
        "livenessProbe": {"failureThreshold": 8, "httpGet": check, "initialDelaySeconds": 10, "timeoutSeconds": 15},
        "name": name,
        "ports": [{"containerPort": port, "name": "probe-port", "protocol": "TCP"}],
        "resources": {"requests": {"cpu": "100m"}},
        "startupProbe": {"failureThreshold": 24, "httpGet": dict(check), "periodSeconds": 10, "timeoutSeconds": 15},
        "volumeMounts": [
            {"mountPath": path, "name": volume} | ({} if volume == "etcd-data" else {"readOnly": True})
            for volume, path, _ in mounts
        ],
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {
            "labels": {"component": name, "tier": "control-plane"},
            "name": name,
            "namespace": "kube-system",
        },
        "spec": {
            "containers": [container],
            "hostNetwork": True,
            "priority": PRIORITY,
            "priorityClassName": "system-node-critical",
            "securityContext": {"seccompProfile": {"type": "RuntimeDefault"}},
            "volumes": [{"hostPath": {"path": path, "type": kind}, "name": volume} for volume, path, kind in mounts],
        },
    }


def _host_files(design: Design) -> dict[str, str]:
    """What the host itself has: its name, its addresses as the kernel shows them, the kubelet's and kubeadm's files."""
    cluster_dns = str(ip_address(int(ip_address(design.services.split(",")[0].split("/")[0])) + 10))
    kubelet = {
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {"anonymous": {"enabled": False}, "x509": {"clientCAFile": f"{PKI}/ca.crt"}},
        "authorization": {"mode": "Webhook"},
        "cgroupDriver": "systemd",
        "clusterDNS": [cluster_dns],
        "clusterDomain": "cluster.local",
        "containerRuntimeEndpoint": "unix:///var/run/containerd/containerd.sock",
        "kind": "KubeletConfiguration",
        "rotateCertificates": True,
        "staticPodPath": "/etc/kubernetes/manifests",
    }
    configuration: dict[str, object] = {
        "apiVersion": "kubeadm.k8s.io/v1beta4",
        "kind": "ClusterConfiguration",
        "kubernetesVersion": design.kubernetes,
        "networking": {"podSubnet": design.pods, "serviceSubnet": design.services},
    }
    if design.endpoint:
        configuration["controlPlaneEndpoint"] = design.endpoint
    files = {
        "/etc/hostname": f"{design.name}\n",
        "/etc/hosts": f"127.0.0.1 localhost\n::1 localhost\n{design.address} {design.name}\n",
        "/etc/fstab": "UUID=0000 / ext4 defaults 0 1\n",
        "/var/lib/kubelet/config.yaml": _yaml(kubelet).decode(),
        "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS=""\n',
        "/etc/kubernetes/kubeadm-config.yaml": _yaml(configuration).decode(),
        "/proc/swaps": "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n",
        "/proc/sys/net/ipv4/ip_forward": "1\n",
        "/proc/sys/kernel/hostname": f"{design.name}\n",
    }
    return {**files, **kernel_addresses(design.address)}


def kernel_addresses(*addresses: str) -> dict[str, str]:
    """/proc/net/fib_trie and if_inet6 of a host that has loopback and these addresses."""
    fib = ["Local:", "  +-- 0.0.0.0/0 3 0 5"]
    inet6 = ["00000000000000000000000000000001 01 80 10 80       lo"]
    for text in ("127.0.0.1", *addresses):
        address = ip_address(text)
        if address.version == 4:
            fib += [f"     |-- {address}", "        /32 host LOCAL"]
        else:
            inet6.append(f"{int(address):032x} 02 40 00 80     eth0")
    return {"/proc/net/fib_trie": "\n".join(fib) + "\n", "/proc/net/if_inet6": "\n".join(inet6) + "\n"}


def _host(address: str) -> str:
    return f"[{address}]" if ":" in address else address


def _yaml(document: object) -> bytes:
    return yaml.safe_dump(document, sort_keys=False, width=10000).encode()


def _write_pair(root: Path, path: str, issued: Issued) -> None:
    _write(root, f"{PKI}/{path}.crt", issued.certificate_pem, 0o644)
    _write(root, f"{PKI}/{path}.key", issued.key_pem, 0o600)


def _write(root: Path, path: str, data: bytes, mode: int) -> None:
    place = root / path.lstrip("/")
    place.parent.mkdir(parents=True, exist_ok=True)
    place.unlink(missing_ok=True)
    place.write_bytes(data)
    place.chmod(mode)
