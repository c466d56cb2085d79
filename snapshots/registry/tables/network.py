"""Services, endpoints, ingresses, policies, addresses."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from typing import Any

from snapshots.registry.objects import at
from snapshots.registry.tables.cells import AGE, NAME, NONE, UNSET, Column, dicts, field, labels, selector, some

ADDRESS_WIDTH = 16
SHOWN = 3
DEFAULT_CLASS = "ingressclass.kubernetes.io/is-default-class"


def external_ip(service: dict[str, Any], wide: bool) -> str:
    kind, given = at(service, "spec", "type"), at(service, "spec", "externalIPs") or []
    if kind == "ExternalName":
        return str(at(service, "spec", "externalName") or "")
    if kind == "LoadBalancer":
        balanced = _balancer(service, wide)
        return ",".join(filter(None, [balanced, *given])) or "<pending>"
    return ",".join(given) or NONE if kind in ("ClusterIP", "NodePort") else "<unknown>"


def _balancer(body: dict[str, Any], wide: bool) -> str:
    ingress = dicts(at(body, "status", "loadBalancer", "ingress"))
    joined = ",".join(sorted({str(each.get("ip") or each.get("hostname")) for each in ingress} - {"None"}))
    return joined if wide or len(joined) <= ADDRESS_WIDTH else joined[: ADDRESS_WIDTH - 3] + "..."


def external(service: dict[str, Any], _: datetime) -> str:
    return external_ip(service, wide=False)


def ports(service: dict[str, Any], _: datetime) -> str:
    listed = []
    for port in dicts(at(service, "spec", "ports")):
        node = f":{port['nodePort']}" if port.get("nodePort") else ""
        listed.append(f"{port.get('port')}{node}/{port.get('protocol')}")
    return ",".join(listed) or NONE


def endpoints(body: dict[str, Any], _: datetime) -> str:
    subsets = dicts(body.get("subsets"))
    if not subsets:
        return NONE
    listed = []
    for subset in subsets:
        addresses = [str(each.get("ip")) for each in dicts(subset.get("addresses"))]
        numbers = [each.get("port") for each in dicts(subset.get("ports"))]
        listed += [_joined(ip, number) for number in numbers for ip in addresses] if numbers else addresses
    return some(listed, SHOWN)


def _joined(ip: str, port: object) -> str:
    return f"[{ip}]:{port}" if ":" in ip else f"{ip}:{port}"


def slice_ports(body: dict[str, Any], _: datetime) -> str:
    listed = [str(port.get("port") or port.get("name") or "*") for port in dicts(body.get("ports"))]
    return some(listed, SHOWN) or UNSET


def slice_endpoints(body: dict[str, Any], _: datetime) -> str:
    listed = [str(ip) for each in dicts(body.get("endpoints")) for ip in each.get("addresses") or ()]
    return some(listed, SHOWN) or UNSET


def hosts(ingress: dict[str, Any], _: datetime) -> str:
    rules = dicts(at(ingress, "spec", "rules"))
    named = [str(rule["host"]) for rule in rules if rule.get("host")]
    return some(named, SHOWN, total=len(rules) if len(named) > SHOWN else len(named)) or "*"


def address(ingress: dict[str, Any], _: datetime) -> str:
    return _balancer(ingress, wide=False)


def ingress_ports(ingress: dict[str, Any], _: datetime) -> str:
    return "80, 443" if at(ingress, "spec", "tls") else "80"


def class_name(body: dict[str, Any], _: datetime) -> str:
    default = at(body, "metadata", "annotations", DEFAULT_CLASS) == "true"
    return f"{at(body, 'metadata', 'name')}{' (default)' if default else ''}"


def class_parameters(body: dict[str, Any], _: datetime) -> str:
    asked = at(body, "spec", "parameters")
    if not asked:
        return NONE
    group = f".{asked['apiGroup']}" if asked.get("apiGroup") else ""
    return f"{asked.get('kind')}{group}/{asked.get('name')}"


def parent(body: dict[str, Any], _: datetime) -> str:
    """`services/shop/front`; a group goes after the resource with a dot."""
    ref = at(body, "spec", "parentRef") or {}
    resource = f"{ref.get('resource', '')}{'.' + ref['group'] if ref.get('group') else ''}"
    return "/".join(str(part) for part in (resource, ref.get("namespace"), ref.get("name")) if part)


def ranges(body: dict[str, Any], _: datetime) -> str:
    return ",".join(_strings(at(body, "spec", "cidrs")))


def _strings(value: object) -> Iterable[str]:
    return (str(each) for each in value) if isinstance(value, list) else ()


COLUMNS: dict[str, tuple[Column, ...]] = {
    "Service": (
        NAME,
        Column("TYPE", field("spec", "type", empty="")),
        Column("CLUSTER-IP", field("spec", "clusterIPs", 0)),
        Column("EXTERNAL-IP", external),
        Column("PORT(S)", ports),
        AGE,
        Column("SELECTOR", labels("spec", "selector"), wide=True),
    ),
    "Endpoints": (NAME, Column("ENDPOINTS", endpoints), AGE),
    "EndpointSlice": (
        NAME,
        Column("ADDRESSTYPE", field("addressType", empty="")),
        Column("PORTS", slice_ports),
        Column("ENDPOINTS", slice_endpoints),
        AGE,
    ),
    "Ingress": (
        NAME,
        Column("CLASS", field("spec", "ingressClassName")),
        Column("HOSTS", hosts),
        Column("ADDRESS", address),
        Column("PORTS", ingress_ports),
        AGE,
    ),
    "IngressClass": (
        Column("NAME", class_name),
        Column("CONTROLLER", field("spec", "controller", empty="")),
        Column("PARAMETERS", class_parameters),
        AGE,
    ),
    "NetworkPolicy": (NAME, Column("POD-SELECTOR", selector("spec", "podSelector")), AGE),
    "IPAddress": (NAME, Column("PARENTREF", parent)),
    "ServiceCIDR": (NAME, Column("CIDRS", ranges), AGE),
}
