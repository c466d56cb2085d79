"""Any bytes in any file of a node: it is read, judged, and no check takes the others with it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from types import MappingProxyType

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import manifests.checks
from drtool.core.check import load, run
from drtool.core.report import Status
from drtool.host.root import Root
from manifests.capture import Capture, capture
from manifests.node import Node
from tests.builders.tree import NOW, laid

PIECES = st.sampled_from(
    (
        *(
            b"",
            b"\0",
            b"\xff\xfe",
            b"{}",
            b"[]",
            b"null",
            b"~",
            b": ",
            b"- ",
            b"\n",
            b"\r\n",
            b"\t",
            b'"',
            b"%",
            b"=",
            b"--",
        ),
        *(
            b"&a *a",
            b"!!set {a}",
            b"!!timestamp x",
            b"!!binary x",
            b".nan",
            b"1e999",
            b"9" * 5000,
            b"[" * 200,
            b"{a: {b: [",
        ),
        *(b"[::1", b"https://[::1:99999", b"1.2.3.4/99", b"true"),
        *(b"-----BEGIN CERTIFICATE-----", b"-----END CERTIFICATE-----"),
    )
)


@cache
def healthy() -> Capture:
    with TemporaryDirectory() as place:
        tree = laid(Path(place))
        tree.log("etcd", "a line", '{"level":"warn","msg":"x"}')
        tree.journal("kubelet", "E1130 a line")
        told = {f"/drtool/{name}.json": b"[]" for name in ("units", "containers", "images", "filesystems", "probes")}
        return capture(Root(tree.root), {**told, "/drtool/etcd-live.json": b"{}", "/drtool/keys.json": b"{}"})


@st.composite
def mutated(draw: st.DrawFn) -> Capture:
    """One to three files with bytes cut, swapped, inserted, values replaced, or nothing but rubbish."""
    entries = dict(healthy().entries)
    files = sorted(path for path, entry in entries.items() if entry.data is not None)
    for path in draw(st.lists(st.sampled_from(files), min_size=1, max_size=3, unique=True)):
        data = draw(
            st.binary(max_size=100) | st.lists(PIECES, max_size=8).map(b"".join) | changed(entries[path].data or b"")
        )
        entries[path] = replace(entries[path], data=data, size=len(data))
    gone = draw(st.none() | st.sampled_from(sorted(entries)))
    if gone:
        kind = draw(st.sampled_from(["absent", "dangling", "special", "unreadable", "directory", "link"]))
        entries[gone] = replace(entries[gone], kind=kind, data=None, error="Input/output error")
    return Capture(MappingProxyType(entries), healthy().listings, False, None)


@st.composite
def changed(draw: st.DrawFn, data: bytes) -> bytes:
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(data)))
        end = min(len(data), start + draw(st.integers(0, 30)))
        data = data[:start] + draw(PIECES | st.binary(max_size=4)) + data[end:]
    lines = data.split(b"\n")
    at = draw(st.integers(0, len(lines) - 1))
    for separator in (b": ", b"=", b"- "):
        if separator in lines[at] and draw(st.booleans()):
            lines[at] = lines[at].split(separator)[0] + separator + draw(PIECES)
    return b"\n".join(lines)


@settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
@given(mutated())
def test_no_bytes_crash_a_check(taken: Capture) -> None:
    node = Node(taken, NOW)
    assert node.layout
    broken = [f"{o.id}: {o.reason}" for o in run(load(manifests.checks), node) if o.status is Status.BROKEN]
    assert broken == []


def odd_trees(place: Path) -> Iterator[None]:
    """What a tree may hold that is no file: each left in place for the next step of the test."""
    os.mkfifo(place / "etc/kubernetes/manifests/fifo.yaml")
    yield
    (place / "etc/kubernetes/pki/ca.crt").unlink()
    os.mkfifo(place / "etc/kubernetes/pki/ca.crt")
    yield
    (place / "etc/hosts").unlink()
    (place / "etc/hosts").symlink_to("hosts")
    yield
    (place / "etc/kubernetes/admin.conf").unlink()
    (place / "etc/kubernetes/admin.conf").symlink_to("/dev/zero")
    yield
    (place / "var/lib/kubelet/config.yaml").unlink()
    (place / "var/lib/kubelet/config.yaml").mkdir()
    yield
    (place / "etc/kubernetes/manifests" / os.fsdecode(b"\xe9\xff.yaml")).write_bytes(b"\xff")
    yield
    (place / "etc/kubernetes/manifests/deep.yaml").write_text("a: " + "[" * 5000)
    (place / "etc/kubernetes/manifests/bomb.yaml").write_text("a: &a [x]\n" + "b: [*a, *a]\n" * 1000)
    yield
    (place / "etc/kubernetes/manifests/huge.yaml").write_text("# " + "x" * (3 << 20))
    yield


def test_what_is_no_file_is_judged_too(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    for _ in odd_trees(tmp_path):
        broken = [f"{o.id}: {o.reason}" for o in run(load(manifests.checks), tree.node()) if o.status is Status.BROKEN]
        assert broken == []


@pytest.mark.skipif(os.geteuid() == 0, reason="root reads everything")
def test_unreadable_files_are_missing_evidence(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.place("/etc/kubernetes/pki/apiserver.crt").chmod(0)
    assert tree.node().entry("/etc/kubernetes/pki/apiserver.crt").error == "Permission denied"
