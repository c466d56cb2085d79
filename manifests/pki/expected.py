"""The PKI that kubeadm makes, as a table: file, CA, subject, usages, and which names a certificate must carry.

Read off trees that kubeadm 1.34 to 1.37 made; paths are relative to the PKI directory, without suffix.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from ipaddress import ip_address, ip_network

SERVER, CLIENT = "serverAuth", "clientAuth"


@dataclass(frozen=True, slots=True)
class Authority:
    """A self-signed CA. kubeadm also writes its common name as a DNS name."""

    path: str
    common_name: str


@dataclass(frozen=True, slots=True)
class Leaf:
    """`names` says which rule gives the SANs: "apiserver", "etcd" or "" for none.

    An empty `common_name` stands for the node's name.
    """

    path: str
    authority: str
    common_name: str
    usages: tuple[str, ...]
    organizations: tuple[str, ...] = ()
    names: str = ""


@dataclass(frozen=True, slots=True)
class ClientConfig:
    """A kubeconfig with a client certificate of the cluster's CA; `local` ones point to this node's own API server."""

    name: str
    common_name: str
    organizations: tuple[str, ...] = ()
    local: bool = False


AUTHORITIES = (
    Authority("ca", "kubernetes"),
    Authority("front-proxy-ca", "front-proxy-ca"),
    Authority("etcd/ca", "etcd-ca"),
)
LEAVES = (
    Leaf("apiserver", "ca", "kube-apiserver", (SERVER,), names="apiserver"),
    Leaf("apiserver-kubelet-client", "ca", "kube-apiserver-kubelet-client", (CLIENT,), ("kubeadm:cluster-admins",)),
    Leaf("front-proxy-client", "front-proxy-ca", "front-proxy-client", (CLIENT,)),
    Leaf("etcd/server", "etcd/ca", "", (SERVER, CLIENT), names="etcd"),
    Leaf("etcd/peer", "etcd/ca", "", (SERVER, CLIENT), names="etcd"),
    Leaf("etcd/healthcheck-client", "etcd/ca", "kube-etcd-healthcheck-client", (CLIENT,)),
    Leaf("apiserver-etcd-client", "etcd/ca", "kube-apiserver-etcd-client", (CLIENT,)),
)
KUBECONFIGS = (
    ClientConfig("admin.conf", "kubernetes-admin", ("kubeadm:cluster-admins",)),
    ClientConfig("super-admin.conf", "kubernetes-super-admin", ("system:masters",)),
    ClientConfig("controller-manager.conf", "system:kube-controller-manager", local=True),
    ClientConfig("scheduler.conf", "system:kube-scheduler", local=True),
    ClientConfig("kubelet.conf", "system:node:", ("system:nodes",)),
)


def apiserver_names(
    node: str,
    address: str,
    service_range: str,
    domain: str = "cluster.local",
    endpoint: str = "",
    more: Iterable[str] = (),
) -> tuple[str, ...]:
    """The names that apiserver.crt must cover: DNS names first, then addresses, each sorted as kubeadm writes them.

    `service_range` is the value of --service-cluster-ip-range; only its first (primary) family gives an address.
    """
    first = service_address(service_range)
    wanted = [
        node,
        "kubernetes",
        "kubernetes.default",
        "kubernetes.default.svc",
        f"kubernetes.default.svc.{domain}",
        first,
        address,
        endpoint,
        *more,
    ]
    return _ordered(name for name in wanted if name)


def etcd_names(node: str, address: str, more: Iterable[str] = ()) -> tuple[str, ...]:
    return _ordered([node, "localhost", address, "127.0.0.1", "::1", *more])


def service_address(service_range: str) -> str:
    """The `kubernetes` Service's address: the first one of the primary range. ValueError where that is no range."""
    network = ip_network(service_range.split(",")[0].strip(), strict=False)
    return str(network[1])


def _ordered(names: Iterable[str]) -> tuple[str, ...]:
    unique = dict.fromkeys(name.strip("[]") for name in names)
    return (*(n for n in unique if not is_address(n)), *(n for n in unique if is_address(n)))


def is_address(name: str) -> bool:
    try:
        ip_address(name)
    except ValueError:
        return False
    return True
