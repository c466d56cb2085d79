"""Where Kubernetes keeps its objects in etcd: key <-> resource, namespace, name.

`/registry/<resource>/[<namespace>/]<name>`, with the group before the resource where its name has a dot: custom
resources, CRDs and APIServices. The exceptions are those of pkg/kubeapiserver/default_storage_factory_builder.go.
"""

from __future__ import annotations

from typing import NamedTuple

PREFIX = "/registry"
EXCEPTIONS = {
    "minions": "nodes",
    "services/specs": "services",
    "services/endpoints": "endpoints",
    "controllers": "replicationcontrollers",
    "ingress": "ingresses",
}
NOT_OBJECTS = ("masterleases", "peerserverleases", "ranges", "health")
"""What lies below the prefix and is no object of the API: the addresses of API servers, allocation maps."""
LONGEST_PATH = 4


class Place(NamedTuple):
    """What a key says of its object; `group` only where the key has it, `namespace` is empty for cluster-wide ones."""

    group: str
    resource: str
    namespace: str
    name: str


def place(key: bytes, prefix: str = PREFIX) -> Place | None:
    """None for a key that holds no object of the API."""
    text = key.decode("utf-8", "replace")
    if not text.startswith(prefix + "/"):
        return None
    parts = text[len(prefix) + 1 :].split("/")
    if len(parts) < 2 or not parts[-1] or parts[0] in NOT_OBJECTS or len(parts) > LONGEST_PATH:
        return None
    group = parts.pop(0) if "." in parts[0] and len(parts) > 2 else ""
    if parts[0] == "services" and not group:
        parts[:2] = ["/".join(parts[:2])]
    if not 2 <= len(parts) <= 3:
        return None
    resource = parts[0] if group else EXCEPTIONS.get(parts[0], parts[0])
    return Place(group, resource, parts[1] if len(parts) == 3 else "", parts[-1])


def prefix_of(group: str, resource: str, namespace: str = "", prefix: str = PREFIX) -> bytes:
    """The prefix of a resource's keys, in one namespace where given. `group` only for those that have it in the key."""
    stored = next((path for path, plural in EXCEPTIONS.items() if plural == resource), resource)
    parts = [prefix, group, resource] if group else [prefix, stored]
    return ("/".join([*parts, namespace] if namespace else parts) + "/").encode()
