"""Against a running API server over the same db: the tables and the YAML that kubectl prints, and what it can apply."""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path

import pytest

from drtool.commands.opening import Opening, opened
from drtool.commands.undelete import Wanted, undelete
from snapshots.registry.objects import Object, Registry
from snapshots.registry.printing import as_json, as_yaml
from snapshots.registry.resources import Resource
from snapshots.registry.tables import table
from tests.eventually import eventually
from tests.registry import api_server, real

pytestmark = [
    pytest.mark.slow,
    real.needed,
    pytest.mark.skipif(api_server.programs() is None, reason="no kube-apiserver was compiled ($LAB/*/bin)"),
]
SORTED_BY_SERVER = {"FlowSchema"}
"""The API server lists these by precedence, not by key."""
LEASED = {"Lease"}
LOST = (
    *("deploy/front", "svc/front", "cm/settings", "secret/db", "ing/front", "hpa/front", "pdb/front"),
    *("sa/front", "role/reader", "rolebinding/reader", "netpol/only-front", "wd/w1"),
)


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[api_server.Cluster]:
    with api_server.served(tmp_path_factory.mktemp("apiserver")) as found:
        yield found


@pytest.fixture(scope="module")
def how(tmp_path_factory: pytest.TempPathFactory) -> Opening:
    file = tmp_path_factory.mktemp("keys") / "encryption.yaml"
    file.write_text(real.configuration())
    return Opening(encryption=file)


def kinds(registry: Registry) -> Iterator[Resource]:
    for resource in registry.resources.all:
        if next(registry.objects(resource), None) is not None and resource.kind not in LEASED:
            yield resource


@pytest.mark.parametrize("wide", [False, True])
def test_tables_have_kubectl_s_columns_and_cells(cluster: api_server.Cluster, how: Opening, wide: bool) -> None:
    with opened(cluster.etcd_url, how) as registry:
        for resource in kinds(registry):
            if resource.kind in SORTED_BY_SERVER:
                continue

            def agreed(resource: Resource = resource) -> bool:
                """Not at once where the API server, which renews its own address and leases, wrote between the two."""
                said = cluster.kubectl("get", resource.full_name, "-A", *(("-o", "wide") if wide else ()))
                with opened(cluster.etcd_url, how) as now:
                    made = table(resource, list(now.objects(resource)), datetime.now(UTC), wide, all_=True)
                return [_aged(row) for row in _cut(said)] == [_aged(row) for row in [made.heads, *made.rows]]

            eventually(agreed, f"kubectl and drtool show the same of {resource.kind}")


def _cut(text: str) -> list[tuple[str, ...]]:
    lines = text.splitlines()
    starts = [found.start() for found in re.finditer(r"\S+(?: \S+)*", lines[0])]
    ends: list[int | None] = [*starts[1:], None]
    return [tuple(line[start:end].strip() for start, end in zip(starts, ends, strict=True)) for line in lines]


def _aged(row: tuple[str, ...]) -> tuple[str, ...]:
    """Ages pass while the test runs."""
    return tuple(re.sub(r"\b(\d+[ydhms])+(?=$| ago\))", "AGE", cell).strip() for cell in row)


def test_yaml_and_json_are_kubectl_s_to_the_byte(cluster: api_server.Cluster, how: Opening) -> None:
    with opened(cluster.etcd_url, how) as registry:
        for resource in kinds(registry):
            for found in list(registry.objects(resource))[:2]:
                place = ("-n", found.namespace) if found.namespace else ()
                one = ("get", resource.full_name, found.name, *place)

                def agreed(resource: Resource = resource, found: Object = found, one: tuple[str, ...] = one) -> bool:
                    with opened(cluster.etcd_url, how) as now:
                        same = (each for each in now.objects(resource) if _named(each) == _named(found))
                        body = next(same).body
                    said = [cluster.kubectl(*one, "-o", form) for form in ("yaml", "json")]
                    return said == [as_yaml(body), as_json(body) + "\n"]

                eventually(agreed, f"kubectl and drtool print the same of {resource.kind} {found.name}")


def _named(found: Object) -> tuple[str, str]:
    return found.namespace, found.name


def test_what_was_deleted_comes_back(cluster: api_server.Cluster, how: Opening, tmp_path: Path) -> None:
    """Lost through the API, written from the snapshot, taken by a server-side apply without a complaint."""
    db = str(real.database(tmp_path))
    cluster.kubectl("delete", "-n", "shop", "--wait=false", *LOST)
    with opened(db, how) as before, opened(cluster.etcd_url, how) as live:
        found = undelete(before, Wanted(namespace="shop"), live)
    assert len(found.bodies) == len(LOST)
    file = tmp_path / "lost.yaml"
    file.write_text("".join(f"---\n{as_yaml(body)}" for body in found.bodies))
    said = cluster.kubectl("apply", "--server-side", "-f", str(file))
    assert said.count("serverside-applied") == len(LOST)
    with opened(db, how) as before, opened(cluster.etcd_url, how) as live:
        assert undelete(before, Wanted(namespace="shop"), live).bodies == ()
