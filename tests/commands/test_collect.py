"""A bundle says what the node says, and holds none of its secrets."""

from __future__ import annotations

import base64
import gzip
import io
import re
import subprocess
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from drtool.cli.collect import command as collect_command
from drtool.commands.check import as_data, check
from drtool.commands.collect import collect
from drtool.commands.tree import opened
from drtool.core.errors import CannotTell
from drtool.host.root import Root
from tests.builders.tree import NOW, Tree, laid
from tests.builders.whole import whole

REAL = (
    *("dualstack-1.37", "external-etcd-1.36", "ha-dns-cp1-1.36", "ha-vip-cp1-1.37", "ha-vip-cp2-1.37"),
    *(
        "lab-address-changed-1.37",
        "lab-live-1.37",
        "lab-one-door-cp2-1.37",
        "single-1.34",
        "single-1.36",
        "single-1.37",
    ),
)
CANARY = "C4nary0f8e5b21d7"


def judged(root: Root) -> object:
    """Whether a key opens what is in etcd is known on the node only: no value of etcd is in a bundle."""
    found = as_data(check(root, NOW, probe=False))
    return {**found, "checks": [outcome for outcome in found["checks"] if outcome["id"] != "encryption-keys-vs-data"]}


def same_from_bundle(tree: Tree, place: Path) -> None:
    made = collect(Root(tree.root), place / "bundle.tar.gz", probe=False)
    expected = judged(Root(tree.root))
    with opened(made.path) as packed:
        assert judged(packed) == expected
    (place / "unpacked").mkdir()
    subprocess.run(["tar", "-xzf", made.path, "-C", place / "unpacked"], check=True)
    [top] = (place / "unpacked").iterdir()
    with opened(top) as unpacked:
        assert judged(unpacked) == expected


@pytest.mark.parametrize("name", REAL)
def test_a_bundle_of_a_real_tree_is_judged_like_the_tree(name: str, tmp_path: Path) -> None:
    same_from_bundle(whole(name, tmp_path / "tree"), tmp_path)


def test_a_bundle_of_a_broken_tree_is_judged_like_the_tree(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    tree.addresses("192.0.2.120")
    tree.write("/etc/kubernetes/pki/apiserver.key", "", 0o644)
    tree.write(
        "/etc/kubernetes/pki/etcd/server.key", "-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n"
    )
    tree.write("/etc/kubernetes/pki/front-proxy-client.key", tree.read("/etc/kubernetes/pki/sa.key"))
    tree.write("/etc/kubernetes/scheduler.conf", "kind: Config\n\tbroken: [\n")
    tree.write("/etc/kubernetes/manifests/kube-scheduler.yaml", "apiVersion: v1\nkind: Pod\n  metadata: {}\n")
    same_from_bundle(tree, tmp_path)


def plant(tree: Tree) -> tuple[str, ...]:
    """A canary in each kind of place where a node keeps a secret; what must not be found in a bundle."""
    jwt = f"eyJhbGciOiJSUzI1NiIsImtpZCI6Ii.{CANARY}JWT.{CANARY}SIG"
    kubeconfig = tree.read("/etc/kubernetes/admin.conf")
    tree.write(
        "/etc/kubernetes/bootstrap-kubelet.conf", re.sub(r"client-\w+-data: .*", f"token: {CANARY}1", kubeconfig)
    )
    tree.write(
        "/etc/cni/net.d/calico-kubeconfig", f"kind: Config\nusers:\n- name: c\n  user:\n    token: |\n      {CANARY}2\n"
    )
    tree.write(
        "/etc/kubernetes/old.conf", f"kind: Config\nusers: [\n- user:\n    token: {CANARY}3\n   password: {CANARY}4\n"
    )
    tree.write("/etc/kubernetes/tokens.csv", f"{CANARY}5,admin,1\n")
    key = base64.b64encode(f"{CANARY}6".encode().ljust(32)).decode()
    tree.write(
        "/etc/kubernetes/enc.yaml",
        f"kind: EncryptionConfiguration\nresources:\n- providers: [aescbc: {{keys: [{{name: a, secret: {key}}}]}}]\n",
    )
    tree.write(
        "/etc/kubernetes/manifests/secret.yaml", f"kind: Secret\nstringData:\n  a: {CANARY}7\ndata: {{b: {CANARY}8}}\n"
    )
    pod = (
        f"kind: Pod\nspec:\n  containers:\n  - name: x\n    args: [--token={CANARY}11]\n    env:\n"
        f"    - {{name: DB_PASSWORD, value: {CANARY}9}}\n    - {{name: HTTPS_PROXY, value: 'http://u:{CANARY}10@proxy'}}\n"
    )
    tree.write("/etc/kubernetes/manifests/extra.yaml", pod)
    tree.write(
        "/root/kubeadm-config.yaml",
        f"kind: InitConfiguration\nbootstrapTokens:\n- token: abcdef.0123456789abcdef\ncertificateKey: {CANARY}12\n",
    )
    tree.write("/etc/containerd/config.toml", f'[x.auth]\npassword = "{CANARY}13"\nauth = "{CANARY}14"\n')
    tree.write("/etc/keepalived/keepalived.conf", f"authentication {{\n auth_type PASS\n auth_pass {CANARY}15\n}}\n")
    tree.write("/etc/systemd/system/kubelet.service.d/20-env.conf", f'[Service]\nEnvironment="API_TOKEN={CANARY}16"\n')
    tree.write("/etc/drtool/config.yaml", f"store: {{secret_key: {CANARY}17}}\nkey: AGE-SECRET-KEY-1{CANARY.upper()}\n")
    tree.log("kube-apiserver", f'"Authorization: Bearer {CANARY}18"', f"got {jwt} from it", f'password="{CANARY}19"')
    tree.journal("kubelet", f"bootstrap token {CANARY}1 is refused")
    half = tree.read("/etc/kubernetes/pki/sa.key").splitlines()
    tree.write("/etc/kubernetes/pki/half.key", "\n".join(half[:5]))
    tree.write("/etc/kubernetes/pki/sa.key.bak", "\n".join(half))
    public = tree.read("/etc/kubernetes/pki/sa.pub")  # an EC key ends with its public half
    lines = [line for line in half[1:-1] if len(line) > 20 and line not in public]
    return (CANARY, CANARY.upper(), "abcdef.0123456789abcdef", key, *lines)


def secrets_of(tree: Tree) -> tuple[str, ...]:
    """The body of every private key of the tree, as PEM and as kubeconfigs embed it."""
    public = tree.read("/etc/kubernetes/pki/sa.pub")
    found = []
    for path in tree.root.rglob("*"):
        if path.is_file() and not path.is_symlink():
            text = path.read_bytes().decode("latin-1")
            for block in re.findall(r"-----BEGIN [A-Z ]*PRIVATE KEY-----(.*?)-----END", text, re.DOTALL):
                found += [line for line in block.split() if len(line) > 20 and line not in public]
            found += re.findall(r"client-key-data: (\S{40,})", text)
    return tuple(found)


def test_no_secret_is_in_the_bundle(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    planted = (*plant(tree), *secrets_of(tree))
    assert len(planted) > 40
    made = collect(Root(tree.root), tmp_path / "bundle.tar.gz", probe=False)
    held = gzip.decompress(made.path.read_bytes()).decode("latin-1")
    assert [secret for secret in planted if secret in held] == []
    for text in re.findall(r"[A-Za-z0-9+/=]{80,}", held):
        assert CANARY.encode() not in base64.b64decode(text + "=" * (-len(text) % 4))


def test_no_secret_of_a_real_node_is_in_its_bundle(tmp_path: Path) -> None:
    tree = whole("lab-live-1.37", tmp_path / "tree")
    secrets = secrets_of(tree)
    encryption = re.findall(r"secret: ([^\s}]+)", tree.read("/etc/kubernetes/pki/encryption.yaml"))
    made = collect(Root(tree.root), tmp_path / "bundle.tar.gz", probe=False)
    held = gzip.decompress(made.path.read_bytes()).decode("latin-1")
    assert encryption
    assert [secret for secret in (*secrets, *encryption) if secret in held] == []
    assert made.size < 4 << 20


def test_etcds_db_stays_on_the_node(tmp_path: Path) -> None:
    tree = whole("lab-live-1.37", tmp_path / "tree")
    made = collect(Root(tree.root), tmp_path / "bundle.tar.gz", probe=False)
    with tarfile.open(made.path) as archive:
        assert [name for name in archive.getnames() if "/var/lib/etcd/" in name] == []
        assert all(member.isfile() for member in archive)


def test_what_cannot_be_read_is_noted_and_the_rest_goes_on(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    tree.remove("/etc/hosts")
    tree.place("/etc/hosts").symlink_to("hosts")
    made = collect(Root(tree.root), tmp_path / "bundle.tar.gz", probe=False)
    assert [path for path, _ in made.unreadable] == ["/etc/hosts"]
    with opened(made.path) as root:
        assert check(root, NOW, probe=False).node.entry("/etc/hosts").kind == "unreadable"


def test_the_command_names_the_file_and_the_node(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    tree = laid(tmp_path / "tree")
    monkeypatch.chdir(tmp_path)
    result = CliRunner().invoke(collect_command, ["--root", str(tree.root)])
    assert result.exit_code == 0, result.output
    [made] = tmp_path.glob("drtool-cp-1-*.tar.gz")
    assert made.name in result.output
    assert made.stat().st_mode & 0o777 == 0o600


def test_a_bundle_that_cannot_be_written_leaves_nothing(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    with pytest.raises(OSError, match="No such file"):
        collect(Root(tree.root), tmp_path / "absent/bundle.tar.gz", probe=False)
    assert [path.name for path in tmp_path.iterdir()] == ["tree"]


@pytest.mark.parametrize(
    "data",
    [b"", b"no archive", gzip.compress(b"no tar"), gzip.compress(b"x" * 2000)[:20]],
    ids=["empty", "no archive", "no tar", "cut"],
)
def test_what_is_no_bundle_is_said_in_one_line(data: bytes, tmp_path: Path) -> None:
    place = tmp_path / "bundle.tar.gz"
    place.write_bytes(data)
    with pytest.raises(CannotTell, match=r"bundle\.tar\.gz cannot be read as a bundle"), opened(place):
        pass


def test_a_bundle_that_was_cut_short_is_no_bundle(tmp_path: Path) -> None:
    made = collect(Root(laid(tmp_path / "tree").root), tmp_path / "whole.tar.gz", probe=False)
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(made.path.read_bytes()[: made.size // 2])
    with pytest.raises(CannotTell), opened(cut):
        pass


def test_a_trees_own_tar_is_read_too(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    with tarfile.open(tmp_path / "tree.tar.gz", "w:gz") as archive:
        archive.add(tree.root, "./")
    with opened(tmp_path / "tree.tar.gz") as root:
        assert judged(root) == judged(Root(tree.root))


def test_an_archive_writes_nothing_outside_of_its_directory(tmp_path: Path) -> None:
    place, outside = tmp_path / "evil.tar", tmp_path / "outside"
    outside.mkdir()
    with tarfile.open(place, "w") as archive:
        for name, target in (("up", "../../outside"), ("abs", str(outside)), ("etc", "/proc/self/cwd")):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, target
            archive.addfile(link)
        for name in ("../outside/a", "/../outside/b", "up/c", "abs/d", "etc/e", "etc/kubernetes/admin.conf"):
            member = tarfile.TarInfo(name)
            member.size = 3
            archive.addfile(member, io.BytesIO(b"bad"))
        for kind in (tarfile.FIFOTYPE, tarfile.CHRTYPE, tarfile.LNKTYPE):
            odd = tarfile.TarInfo(f"odd{kind.decode()}")
            odd.type, odd.linkname = kind, "up"
            archive.addfile(odd)
    with opened(place) as root:
        check(root, NOW, probe=False)
        assert not [
            path for path in root.directory.rglob("*") if not (path.is_file() or path.is_dir() or path.is_symlink())
        ]
    assert list(outside.iterdir()) == []


def test_modes_of_directories_and_sparse_files_are_unpacked_as_they_were(tmp_path: Path) -> None:
    tree = laid(tmp_path / "tree")
    tree.place("/var/lib/etcd").chmod(0o755)
    with tree.place("/var/lib/etcd/sparse").open("wb") as file:
        file.write(b"head")
        file.truncate(1 << 20)
    packed = tmp_path / "tree.tar"
    subprocess.run(["tar", "--sparse", "-cf", packed, "-C", tree.root, "."], check=True)
    with opened(packed) as root:
        assert root.read("/var/lib/etcd", 0).mode == 0o755
        sparse = root.read("/var/lib/etcd/sparse", 10)
        assert (sparse.size, sparse.data) == (1 << 20, b"head\0\0\0\0\0\0")
