from __future__ import annotations

import base64
import json
import os
from pathlib import Path

import pytest

from drtool.core.errors import Refused, Unsound
from drtool.host.root import Root
from snapshots import bundle

FILES = {
    "/etc/kubernetes/pki/ca.crt": 0o644,
    "/etc/kubernetes/pki/ca.key": 0o600,
    "/etc/kubernetes/pki/sa.key": 0o600,
    "/etc/kubernetes/pki/sa.pub": 0o600,
    "/etc/kubernetes/pki/front-proxy-ca.crt": 0o644,
    "/etc/kubernetes/pki/front-proxy-ca.key": 0o600,
    "/etc/kubernetes/pki/etcd/ca.crt": 0o644,
    "/etc/kubernetes/pki/etcd/ca.key": 0o600,
    "/etc/kubernetes/manifests/kube-apiserver.yaml": 0o600,
    "/etc/kubernetes/manifests/etcd.yaml": 0o600,
    "/var/lib/kubelet/pki/kubelet-client-2026.pem": 0o600,
}


@pytest.fixture
def node(tmp_path: Path) -> Root:
    root = tmp_path / "node"
    for path, mode in FILES.items():
        place = root / path.lstrip("/")
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_text(f"content of {path}")
        place.chmod(mode)
    (root / "var/lib/kubelet/pki/kubelet-client-current.pem").symlink_to("/var/lib/kubelet/pki/kubelet-client-2026.pem")
    return Root(root)


def collected(node: Root, **more: object) -> bundle.Bundle:
    return bundle.collect(node, "cp-1", control_plane=True, stacked=True, **more)  # type: ignore[arg-type]


def test_every_file_comes_with_mode_and_hash(node: Root) -> None:
    found = collected(node)
    assert found.missing == ()
    assert {one.path: int(one.mode, 8) for one in found.files if not one.link} == FILES
    link = found.file("/var/lib/kubelet/pki/kubelet-client-current.pem")
    assert link is not None
    assert link.data == b"content of /var/lib/kubelet/pki/kubelet-client-2026.pem"
    assert bundle.decode(bundle.encode(found), "x") == found


def test_plain_json_tools_read_it(node: Root) -> None:
    tree = json.loads(bundle.encode(collected(node)))
    (key,) = (one for one in tree["files"] if one["path"] == "/etc/kubernetes/pki/sa.key")
    assert base64.b64decode(key["data"]) == b"content of /etc/kubernetes/pki/sa.key"


@pytest.mark.parametrize("path", [path for path in FILES if "kubelet" not in path])
def test_what_is_needed_and_missing_is_named(node: Root, path: str) -> None:
    node.locate(path).unlink()
    assert [one.partition(":")[0] for one in collected(node).missing] == [path]
    assert collected(node, accept_missing=(path,)).missing == ()


def test_a_named_encryption_configuration_must_be_there(node: Root) -> None:
    found = collected(node, needed=["/etc/kubernetes/enc.yaml"])
    assert found.missing == ("/etc/kubernetes/enc.yaml: No such file or directory",)


def test_a_directory_that_is_named_is_kept_whole(node: Root) -> None:
    extra = node.directory / "etc/audit"
    extra.mkdir()
    (extra / "policy.yaml").write_text("rules: []")
    assert collected(node, named=["/etc/audit"]).file("/etc/audit/policy.yaml") is not None


def test_unpacking_writes_only_what_is_asked_for(node: Root, tmp_path: Path) -> None:
    target = tmp_path / "target"
    target.mkdir()
    wanted = ("/etc/kubernetes/pki/ca.key", "/var/lib/kubelet/pki/kubelet-client-current.pem")
    os.umask(0o022)
    assert bundle.unpack(collected(node), Root(target), wanted) == wanted
    found = {f"/{place.relative_to(target)}": place for place in target.rglob("*") if not place.is_dir()}
    assert set(found) == set(wanted)
    assert all(place.stat().st_mode & 0o777 == 0o600 and not place.is_symlink() for place in found.values())
    with pytest.raises(Refused):
        bundle.unpack(collected(node), Root(target), ["/etc/passwd"])


def test_unpacking_replaces_nothing_and_follows_no_link(node: Root, tmp_path: Path) -> None:
    target, outside = tmp_path / "target", tmp_path / "outside"
    (target / "etc").mkdir(parents=True)
    outside.mkdir()
    (target / "etc/kubernetes").symlink_to(outside)
    with pytest.raises(Refused, match="link"):
        bundle.unpack(collected(node), Root(target), ["/etc/kubernetes/pki/ca.key"])
    assert list(outside.iterdir()) == []

    (target / "etc/kubernetes").unlink()
    (target / "etc/kubernetes/pki").mkdir(parents=True)
    (target / "etc/kubernetes/pki/ca.key").write_text("older")
    with pytest.raises(Refused, match="already"):
        bundle.unpack(collected(node), Root(target), ["/etc/kubernetes/pki/ca.key"])
    assert (target / "etc/kubernetes/pki/ca.key").read_text() == "older"


@pytest.mark.parametrize("path", ["etc/passwd", "/etc/../../x", "/", "", "/a//b", "/a/./b", "/a\0b"])
def test_names_that_lead_elsewhere_make_a_bundle_unsound(path: str) -> None:
    one = bundle.File(path, "0600", 0, 0, 1, "ca978112ca1bbdcafac231b39a23dc4da786eff8147c4e72b9807785afee48bb", b"a")
    with pytest.raises(Unsound, match="no plain path"):
        bundle.decode(bundle.encode(bundle.Bundle("cp-1", (one,))), "x")


def test_a_file_that_is_not_what_was_read_makes_it_unsound(node: Root) -> None:
    data = bundle.encode(collected(node)).replace(b'"data":"Y29udGVudC', b'"data":"Y29udGVudD', 1)
    with pytest.raises(Unsound, match="sha256 differs"):
        bundle.decode(data, "x")
