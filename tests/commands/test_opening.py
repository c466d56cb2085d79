"""The same object out of a live etcd, a data directory, a snapshot and a stored backup."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from drtool.commands.history import history
from drtool.commands.opening import LIVE, Opening, database, opened
from drtool.core.errors import Locked, NotFound, UsageError
from drtool.host.root import Root
from snapshots.etcd import Etcd, EtcdUnreachable
from tests.builders.live_node import LiveNode, live_node
from tests.commands.backing import config_for, run
from tests.registry import real

KEY = b"/registry/configmaps/shop/settings"
BODY: dict[str, Any] = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings", "namespace": "shop"}}


@pytest.fixture(scope="module")
def filled(tmp_path_factory: pytest.TempPathFactory) -> Iterator[LiveNode]:
    """A running node with a ConfigMap that was changed twice."""
    with live_node(tmp_path_factory.mktemp("objects") / "root") as live, Etcd(live.access) as etcd:
        for value in ("one", "two", "three"):
            etcd.put(KEY, json.dumps(BODY | {"data": {"a": value}}).encode())
        yield live


def value(source: str, how: Opening, revision: int | None = None) -> str:
    with opened(source, how, revision) as registry:
        (resource,) = registry.resources.find("cm")
        (found,) = registry.objects(resource, "shop", "settings")
        assert [each.name for each in registry.everything()] == ["settings"]
        return str(found.at("data", "a"))


def test_a_live_etcd(filled: LiveNode) -> None:
    how = Opening(root=filled.root)
    assert value(LIVE, how) == "three"
    with opened(LIVE, how) as registry:
        (resource,) = registry.resources.find("cm")
        steps = history(registry, resource, "shop", "settings")
        assert registry.counts() == {("", "configmaps", "shop"): 1}
    assert [step.change for step in steps] == ["created", "updated", "updated"]
    assert value(LIVE, how, steps[0].revision) == "one"
    with pytest.raises(EtcdUnreachable), opened("https://127.0.0.1:1", how):
        pass


def test_the_data_directory_of_a_running_etcd_is_left_alone(filled: LiveNode) -> None:
    with pytest.raises(Locked, match="a running etcd has it open"):
        database(filled.directory / "var/lib/etcd")


def test_a_backup_stays_in_memory(filled: LiveNode, tmp_path: Path) -> None:
    config = config_for(tmp_path)
    result = run(config, filled)
    before = sorted(tmp_path.rglob("*"))
    assert value("latest", Opening(config)) == "three"
    assert value(result.record.id, Opening(config)) == "three"
    assert sorted(tmp_path.rglob("*")) == before
    with pytest.raises(NotFound), opened("no-such-backup", Opening(config)):
        pass


def test_a_snapshot_and_a_data_directory(filled: LiveNode, tmp_path: Path) -> None:
    with Etcd(filled.access) as etcd:
        told = etcd.status()
    copy = tmp_path / "etcd"
    shutil.copytree(filled.directory / "var/lib/etcd", copy)
    db = copy / "member/snap/db"
    assert value(str(copy), Opening()) == value(str(db), Opening()) == "three"
    with pytest.raises(UsageError, match="yet to come"):
        value(str(db), Opening(), told.revision + 10)
    with pytest.raises(NotFound, match="no etcd data directory"):
        database(tmp_path)


@real.needed
def test_an_encryption_configuration_that_is_not_there_is_named(tmp_path: Path) -> None:
    how = Opening(encryption=tmp_path / "gone.yaml")
    with pytest.raises(NotFound, match=r"gone\.yaml: No such file"), opened(str(real.database(tmp_path)), how):
        pass


@real.needed
def test_the_node_s_own_configuration_opens_its_values(tmp_path: Path) -> None:
    db, manifest = real.database(tmp_path), tmp_path / "etc/kubernetes/manifests/kube-apiserver.yaml"
    manifest.parent.mkdir(parents=True)
    command = "[kube-apiserver, --encryption-provider-config=/etc/kubernetes/enc.yaml]"
    container = f"{{name: kube-apiserver, image: 'registry.k8s.io/kube-apiserver:v1.37.2', command: {command}}}"
    manifest.write_text(
        f"apiVersion: v1\nkind: Pod\nmetadata: {{name: kube-apiserver}}\nspec: {{containers: [{container}]}}"
    )
    how = Opening(root=Root(tmp_path))
    with opened(str(db), how) as registry:
        assert len([each for each in registry.everything() if each.trouble]) == 3
    (tmp_path / "etc/kubernetes/enc.yaml").write_text(real.configuration())
    with opened(str(db), how) as registry:
        assert [str(each) for each in registry.everything() if each.trouble] == []
    manifest.write_text("kind: Pod\nspec: [")
    with opened(str(db), how) as registry:
        assert len([each for each in registry.everything() if each.trouble]) == 3
