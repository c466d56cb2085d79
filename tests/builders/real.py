"""Trees that the real kubeadm made, unpacked into a test's directory, to be broken like the made ones."""

from __future__ import annotations

import atexit
import re
import shutil
from functools import cache
from pathlib import Path
from tempfile import mkdtemp

import pytest
from cryptography import x509

from drtool.host.archive import unpack
from manifests.kubeadm import Design
from manifests.pki.expected import AUTHORITIES
from manifests.pki.issuing import Issued, load_private
from tests.builders.tree import Tree

SHARED = Path(__file__).parents[3] / "shared" / "trees"
PKI = "/etc/kubernetes/pki"


def real(name: str, into: Path) -> Tree:
    """Skips where the archive is not at hand. etcd's files are there, but empty: what is around them is the matter."""
    source = _unpacked(name)
    shutil.copytree(
        source, into, symlinks=True, dirs_exist_ok=True, ignore=shutil.ignore_patterns("*.wal", "*.tmp", "db")
    )
    for path in source.glob("var/lib/etcd/member/*/*"):
        (into / path.relative_to(source)).touch()
    tree = Tree(into, _design(into))
    tree.authorities.update({a.path: _issued(tree, a.path) for a in AUTHORITIES if _has_key(tree, a.path)})
    return tree


@cache
def _unpacked(name: str) -> Path:
    archive = SHARED / f"{name}.tar.gz"
    if not archive.is_file():
        pytest.skip(f"{archive.name}: the trees of real nodes (../shared/trees) are not here")
    into = Path(mkdtemp(prefix="drtool-real-"))
    atexit.register(shutil.rmtree, into, ignore_errors=True)
    return unpack(archive, into)


def _design(root: Path) -> Design:
    apiserver = (root / "etc/kubernetes/manifests/kube-apiserver.yaml").read_text()
    address = re.search(r"--advertise-address=(\S+)", apiserver)
    assert address
    return Design(name=(root / "etc/hostname").read_text().strip(), address=address[1])


def _has_key(tree: Tree, path: str) -> bool:
    return tree.place(f"{PKI}/{path}.key").is_file()


def _issued(tree: Tree, path: str) -> Issued:
    certificate = x509.load_pem_x509_certificate(tree.place(f"{PKI}/{path}.crt").read_bytes())
    return Issued(certificate, load_private(tree.place(f"{PKI}/{path}.key").read_bytes()))
