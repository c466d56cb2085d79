"""ls, get, history, diff and undelete over objects in memory and over a real db, through the command line."""

from __future__ import annotations

import json
import stat
from pathlib import Path

import pytest
import yaml
from click.testing import CliRunner, Result

from drtool.cli import group
from drtool.commands import diff, get, history, ls, undelete
from drtool.core.errors import DrtoolError, Locked, NotFound, UsageError
from snapshots.registry.comparing import Difference
from snapshots.registry.selectors import parse
from tests.registry import real, stored

SHOP = """
apiVersion: v1
kind: Namespace
metadata: {name: shop, uid: ns}
---
apiVersion: apps/v1
kind: Deployment
metadata: {name: front, namespace: shop, uid: d1, labels: {app: front}, resourceVersion: "7"}
spec: {replicas: 3, template: {spec: {containers: [{name: web, image: "front:1"}]}}}
status: {replicas: 3}
---
apiVersion: apps/v1
kind: ReplicaSet
metadata:
  name: front-1
  namespace: shop
  uid: r1
  ownerReferences: [{controller: true, kind: Deployment, name: front, uid: d1}]
---
apiVersion: v1
kind: Secret
metadata: {name: db, namespace: shop, uid: s1}
data: {password: b2xk}
---
apiVersion: v1
kind: ConfigMap
metadata: {name: elsewhere, namespace: other, uid: c1}
"""


def run(*words: str | Path) -> Result:
    return CliRunner().invoke(group, [str(word) for word in words], standalone_mode=False)


def test_kinds_are_counted() -> None:
    counted = {kind.resource.plural: (kind.objects, kind.namespaces) for kind in ls.kinds(stored.registry(SHOP))}
    assert counted == {
        "namespaces": (1, 0),
        "deployments": (1, 1),
        "replicasets": (1, 1),
        "secrets": (1, 1),
        "configmaps": (1, 1),
    }
    assert [kind.resource.plural for kind in ls.kinds(stored.registry(SHOP), "other")] == ["configmaps"]


def test_objects_are_selected_as_kubectl_does() -> None:
    registry = stored.registry(SHOP)
    found = get.get(registry, get.Query(("deploy,secret",), "shop"))
    assert [(kind.resource.plural, [each.name for each in kind.objects]) for kind in found] == [
        ("deployments", ["front"]),
        ("secrets", ["db"]),
    ]
    (one,) = get.get(registry, get.Query(("deploy/front",), "shop"))
    assert one.objects[0].name == "front"
    (none,) = get.get(registry, get.Query(("deploy",), "shop", selector="app=back"))
    assert none.objects == ()
    with pytest.raises(get.NoSuchObject, match=r'deployments\.apps "back" not found in namespace shop'):
        get.get(registry, get.Query(("deploy", "back"), "shop"))
    with pytest.raises(UsageError, match="exclude each other"):
        get.get(registry, get.Query(("deploy", "front"), "shop", selector="a"))
    with pytest.raises(UsageError, match="no KIND/NAME"):
        get.get(registry, get.Query(("deploy/front", "back"), "shop"))


def test_a_diff_names_fields_and_leaves_noise_out() -> None:
    after = (
        SHOP.replace("replicas: 3, template", "replicas: 5, template").replace('"7"', '"8"').replace("b2xk", "bmV3IQ==")
    )
    after = after.replace("elsewhere", "moved")
    found = list(diff.diff(stored.registry(SHOP), stored.registry(after)))
    assert [(each.change, str(each.object), each.fields) for each in found] == [
        ("removed", "ConfigMap other/elsewhere", ()),
        ("added", "ConfigMap other/moved", ()),
        ("changed", "Deployment shop/front", (Difference("spec.replicas", 3, 5),)),
        ("changed", "Secret shop/db", (Difference("data.password", "<hidden: 3 bytes>", "<hidden: 4 bytes>"),)),
    ]
    assert "b2xk" not in str([diff.as_data(each) for each in found])
    assert list(diff.diff(stored.registry(SHOP), stored.registry(SHOP))) == []


def test_a_secret_of_the_same_size_differs_without_being_shown() -> None:
    after = SHOP.replace("b2xk", "bmV3")
    (found,) = diff.diff(stored.registry(SHOP), stored.registry(after))
    assert found.fields == (Difference("data.password", "<hidden>", "<hidden> (differs)"),)


def test_a_scope_limits_a_diff() -> None:
    after = stored.registry("")
    before = stored.registry(SHOP)
    scope = diff.Scope(before.resources.find("deploy"), "shop")
    assert [str(each.object) for each in diff.diff(before, after, scope)] == ["Deployment shop/front"]
    labelled = diff.Scope(selector=parse("app=front"))
    assert [str(each.object) for each in diff.diff(before, after, labelled)] == ["Deployment shop/front"]


def test_a_namespace_comes_back_without_what_controllers_make() -> None:
    found = undelete.undelete(stored.registry(SHOP), undelete.Wanted(namespace="shop"))
    assert [body["kind"] for body in found.bodies] == ["Namespace", "Secret", "Deployment"]
    assert [(str(each), why) for each, why in found.left_out] == [
        ("ReplicaSet shop/front-1", "Deployment front makes it")
    ]
    assert all(not {"uid", "resourceVersion"} & set(body["metadata"]) for body in found.bodies)
    assert "status" not in found.bodies[-1]


def test_only_what_is_missing_comes_back() -> None:
    kept = "---".join(SHOP.split("---")[:2])
    found = undelete.undelete(stored.registry(SHOP), undelete.Wanted(), stored.registry(kept))
    assert [body["kind"] for body in found.bodies] == ["Secret", "ConfigMap"]


def test_a_history_of_nothing_says_so() -> None:
    registry = stored.registry(SHOP)
    (resource,) = registry.resources.find("deploy")
    (only,) = history.history(registry, resource, "shop", "front")
    assert only.change == "created"
    with pytest.raises(get.NoSuchObject, match="no revision"):
        history.history(registry, resource, "shop", "back")


# -- the command line, over a snapshot of a real API server


@real.needed
def test_ls_and_get_over_a_snapshot(tmp_path: Path) -> None:
    db = real.database(tmp_path)
    listed = json.loads(run("ls", "--from", db, "-o", "json").stdout)
    assert listed["schemaVersion"] == 1
    assert {"resource": "pods", "kind": "Pod", "objects": 12, "namespaces": 3} in listed["kinds"]
    named = run("get", "po", "-n", "shop", "--from", db, "-o", "name")
    assert named.stdout.splitlines()[0] == "pod/front-75fcdd9765-6tlnn"
    table = run("get", "deploy,svc", "-n", "shop", "--from", db).stdout
    assert "deployment.apps/front   0/3     3            0" in table
    assert yaml.safe_load(run("get", "deploy", "front", "-n", "shop", "--from", db).stdout)["spec"]["replicas"] == 3
    assert run("get", "po", "--from", db).stderr == "No resources found in default namespace.\n"


@real.needed
def test_what_is_locked_is_named_on_stderr_and_in_the_status(tmp_path: Path) -> None:
    db = real.database(tmp_path)
    shut = run("get", "secret", "-A", "--from", db)
    assert shut.return_value == 1
    assert "/registry/secrets/billing/locked at revision 579: locked: encrypted by aescbc v1 key key1" in shut.stderr
    assert "db" in shut.stdout


@real.needed
def test_secrets_are_masked_except_in_a_named_file(tmp_path: Path) -> None:
    db, keys, file = real.database(tmp_path), tmp_path / "encryption.yaml", tmp_path / "out.yaml"
    keys.write_text(real.configuration())
    words = ("get", "secret/locked", "-n", "billing", "--from", db, "--encryption-config", keys)
    assert "<hidden: 14 bytes>" in run(*words).stdout
    assert isinstance(run(*words, "--show-secrets").exception, UsageError)
    assert run(*words, "-f", file).return_value == 0
    assert "hidden" not in file.read_text()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


@real.needed
def test_history_and_at_revision(tmp_path: Path) -> None:
    db = real.database(tmp_path)
    told = json.loads(run("history", "deploy", "front", "-n", "shop", "--from", db, "-o", "json").stdout)
    assert [(each["revision"], each["change"]) for each in told["revisions"]][:2] == [
        (404, "created"),
        (408, "updated"),
    ]
    assert json.loads(run("history", "deploy/front", "-n", "shop", "--from", db, "-o", "json").stdout) == told
    assert isinstance(run("history", "deploy", "--from", db).exception, UsageError)
    both = [
        run("undelete", *words, "-n", "shop", "--from", db).stdout for words in (("deploy/front",), ("deploy", "front"))
    ]
    assert both[0] == both[1] != ""
    first = run("get", "deploy", "front", "-n", "shop", "--from", db, "--at-revision", "404").stdout
    assert yaml.safe_load(first)["metadata"]["resourceVersion"] == "404"
    early = run("get", "deploy", "front", "-n", "shop", "--from", db, "--at-revision", "403")
    assert isinstance(early.exception, DrtoolError)


@real.needed
def test_diff_has_the_exit_status_of_diff(tmp_path: Path) -> None:
    db = real.database(tmp_path)
    same = run("diff", db, db)
    assert (same.return_value, same.stdout) == (0, "no difference\n")


@real.needed
def test_undelete_leaves_secrets_to_a_file(tmp_path: Path) -> None:
    db, file = real.database(tmp_path), tmp_path / "shop.yaml"
    shown = run("undelete", "-n", "shop", "--from", db)
    kinds = [body["kind"] for body in yaml.safe_load_all(shown.stdout)]
    assert kinds[0] == "Namespace"
    assert "Secret" not in kinds
    assert "Secrets left out" in shown.stderr
    run("undelete", "-n", "shop", "--from", db, "-f", file)
    assert "Secret" in [body["kind"] for body in yaml.safe_load_all(file.read_text())]


@real.needed
@pytest.mark.parametrize("command", ["ls", "get pods -A", "undelete pods -n shop"])
def test_a_changed_snapshot_is_read_and_told(command: str, tmp_path: Path) -> None:
    db = real.database(tmp_path)
    assert "trailing hash" not in run(*command.split(), "--from", db).stderr
    data = bytearray(db.read_bytes())
    data[data.index(b"/registry/pods/billing/ledger-0") + 60] ^= 1
    db.write_bytes(data)
    found = run(*command.split(), "--from", db)
    assert found.exception is None
    assert f"{db} was changed or cut after it was saved: its trailing hash is wrong" in found.stderr


def test_a_source_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert isinstance(run("ls", "--from", tmp_path / "gone.db").exception, NotFound)
    assert isinstance(run("ls", "--from", tmp_path / "empty").exception, NotFound)
    assert isinstance(run("undelete", "--from", tmp_path).exception, UsageError)


@real.needed
def test_a_db_that_a_server_has_open_is_left_alone(tmp_path: Path) -> None:
    import fcntl

    db = real.database(tmp_path)
    with db.open("rb") as held:
        fcntl.flock(held, fcntl.LOCK_EX)
        assert isinstance(run("ls", "--from", db).exception, Locked)
