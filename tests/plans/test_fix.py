"""Each finding with one right answer: the node is broken, the plan is made and carried out, the check passes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

import pytest

from drtool.commands import fix
from drtool.commands.check import check
from drtool.core.errors import UsageError
from drtool.core.plan import Plan, carry_out, decode, encode, undo
from drtool.core.report import Status
from drtool.host.journal import DiskJournal
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans.catalogue import STEPS
from manifests.pki.expected import CLIENT, SERVER
from manifests.pki.issuing import issue, issue_authority, new_key
from tests.builders.tree import BORN, NOW, Tree, laid
from tests.crash.test_kill_matrix import tree as contents
from tests.fakes.host import FakeServices, rooted

PKI, MANIFESTS, KUBELET = "/etc/kubernetes/pki", "/etc/kubernetes/manifests", "/var/lib/kubelet/pki"
REMOTE = ("WaitForEtcd", "WaitForApiserver")


def leaf(
    tree: Tree, path: str, *, names: tuple[str, ...] = (), life: int = 365, authority: str = "ca", name: str = "cp-1"
) -> None:
    """A pair that one of the tree's CAs issued when the tree was made, for `life` days."""
    usages, lives = [SERVER, CLIENT], timedelta(days=life)
    made = issue(tree.authorities[authority], name, usages, BORN, new_key("ECDSA-P256"), names=names, life=lives)
    tree.write(f"{PKI}/{path}.crt", made.certificate_pem)
    tree.write(f"{PKI}/{path}.key", made.key_pem, 0o600)


def other_key(tree: Tree) -> None:
    made = issue_authority("x", NOW, new_key("ECDSA-P256"))
    tree.write(f"{PKI}/apiserver.key", made.key_pem, 0o600)


def other_ca(tree: Tree) -> None:
    stranger = issue_authority("etcd-ca", NOW, new_key("ECDSA-P256"))
    names = ("cp-1", "localhost", "192.0.2.111", "127.0.0.1")
    made = issue(stranger, "cp-1", [SERVER, CLIENT], NOW, new_key("ECDSA-P256"), names=names)
    tree.write(f"{PKI}/etcd/peer.crt", made.certificate_pem)
    tree.write(f"{PKI}/etcd/peer.key", made.key_pem, 0o600)


def old_name(tree: Tree) -> None:
    leaf(tree, "etcd/peer", names=("cp-2", "localhost", "192.0.2.112"), authority="etcd/ca", name="cp-2")


def no_address(tree: Tree) -> None:
    leaf(tree, "etcd/server", names=("cp-1", "localhost", "127.0.0.1"), authority="etcd/ca")


def expired(tree: Tree) -> None:
    leaf(tree, "apiserver-kubelet-client", life=1)


def expired_kubelet(tree: Tree) -> None:
    current = tree.place(f"{KUBELET}/kubelet-client-current.pem")
    key, day = new_key("ECDSA-P256"), timedelta(days=1)
    made = issue(tree.authorities["ca"], "system:node:cp-1", [CLIENT], BORN, key, ("system:nodes",), life=day)
    tree.write(str(Path(KUBELET) / current.resolve().name), made.certificate_pem + made.key_pem, 0o600)


def dangling(tree: Tree) -> None:
    current = tree.place(f"{KUBELET}/kubelet-client-current.pem")
    current.unlink()
    current.symlink_to(f"{KUBELET}/kubelet-client-2020-01-01-00-00-00.pem")


def copy_of_manifest(tree: Tree) -> None:
    tree.write(f"{MANIFESTS}/etcd.yaml.bak", tree.read(f"{MANIFESTS}/etcd.yaml"), 0o600)


def removed_flag(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "insecure-port", "0")


def lost_probe(tree: Tree) -> None:
    tree.sub(f"{MANIFESTS}/kube-scheduler.yaml", r"host: 127\.0\.0\.1", "host: 192.0.2.9")


def wrong_etcd_port(tree: Tree) -> None:
    tree.set_flag("kube-apiserver", "etcd-servers", "https://127.0.0.1:4001")


def stale_ca(tree: Tree) -> None:
    import base64
    import re

    stranger = base64.b64encode(issue_authority("kubernetes", NOW, new_key("ECDSA-P256")).certificate_pem).decode()
    path = "/etc/kubernetes/scheduler.conf"
    tree.write(path, re.sub(r"authority-data: \S+", f"authority-data: {stranger}", tree.read(path)), 0o600)


def lost_server(tree: Tree) -> None:
    tree.sub("/etc/kubernetes/controller-manager.conf", r"https://[\d.]+:", "https://203.0.113.9:")


def readable_key(tree: Tree) -> None:
    tree.place(f"{PKI}/sa.key").chmod(0o644)


def removed_kubelet_flag(tree: Tree) -> None:
    path = "/var/lib/kubelet/kubeadm-flags.env"
    args = "--v=2 --network-plugin=cni --pod-infra-container-image registry.k8s.io/pause:3.9 --node-ip=192.0.2.111"
    tree.write(path, f'KUBELET_KUBEADM_ARGS="{args}"\n# kept\n')


BREAKS: dict[str, Callable[[Tree], None]] = {
    "key-pair-mismatch": other_key,
    "issuer-mismatch": other_ca,
    "cert-of-other-node": old_name,
    "san-missing-own-address": no_address,
    "cert-expired": expired,
    "kubelet-client-link": dangling,
    "duplicate-static-pod": copy_of_manifest,
    "flag-unknown-or-removed": removed_flag,
    "probe-target-mismatch": lost_probe,
    "etcd-servers-vs-etcd": wrong_etcd_port,
    "kubeconfig-ca-stale": stale_ca,
    "kubeconfig-server-unknown-address": lost_server,
    "key-file-readable": readable_key,
    "kubelet-flag-removed": removed_kubelet_flag,
}


def failing(root: Path) -> set[str]:
    report = check(Root(root), NOW)
    return {one.id for one in report.outcomes if one.status is Status.FAILED}


def local(plan: Plan[Host], remote: tuple[str, ...] = REMOTE) -> Plan[Host]:
    """Without what only a running cluster can answer."""
    steps = tuple(step for step in plan.steps if type(step).__name__ not in remote)
    return Plan(plan.id, plan.title, plan.cluster, steps, plan.by_hand)


def host_of(root: Path, plan: Plan[Host]) -> Host:
    made = rooted(root, plan=plan.id)
    made.clock.time = NOW.timestamp()  # type: ignore[attr-defined]
    return made


@pytest.mark.parametrize("name", BREAKS)
def test_the_finding_goes_and_comes_back_with_undo(name: str, tmp_path: Path) -> None:
    tree = laid(tmp_path / "node")
    healthy = failing(tree.root)
    BREAKS[name](tree)
    broken = failing(tree.root)
    assert name in broken
    before = contents(tree.root)
    plan = local(fix.plan(Root(tree.root), name, NOW))
    assert decode(encode(plan), STEPS) == plan
    host, journal = host_of(tree.root, plan), DiskJournal(Root(tree.root), plan.id)
    journal.start(encode(plan))
    carry_out(plan, host, journal)
    assert name not in failing(tree.root)
    assert failing(tree.root) <= healthy | broken
    undo(plan, host, journal)
    assert contents(tree.root) == before


def test_only_the_removed_flags_go(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    removed_kubelet_flag(tree)
    (step, *_) = fix.plan(Root(tmp_path), "kubelet-flag-removed", NOW).steps
    step.apply(host_of(tmp_path, fix.plan(Root(tmp_path), "kubelet-flag-removed", NOW)))
    text = tree.read("/var/lib/kubelet/kubeadm-flags.env")
    assert text == 'KUBELET_KUBEADM_ARGS="--v=2 --node-ip=192.0.2.111"\n# kept\n'


def test_a_removed_flag_goes_and_the_lines_around_it_still_go_on(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    text = 'KUBELET_EXTRA_ARGS="--network-plugin \\\n  cni \\\n  --container-runtime \\\n  --v=2"\nB=1\n'
    tree.write("/etc/default/kubelet", text)
    (step, *_) = fix.plan(Root(tmp_path), "kubelet-flag-removed", NOW).steps
    step.apply(host_of(tmp_path, fix.plan(Root(tmp_path), "kubelet-flag-removed", NOW)))
    assert tree.read("/etc/default/kubelet") == 'KUBELET_EXTRA_ARGS=" \\\n  \\\n  --v=2"\nB=1\n'


def test_an_expired_kubelet_certificate_is_issued_and_the_kubelet_restarted(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    expired_kubelet(tree)
    assert "cert-expired" in failing(tmp_path)
    plan = local(fix.plan(Root(tmp_path), "cert-expired", NOW))
    host, journal = host_of(tmp_path, plan), DiskJournal(Root(tmp_path), plan.id)
    journal.start(encode(plan))
    carry_out(plan, host, journal)
    assert "cert-expired" not in failing(tmp_path)
    assert isinstance(host.services, FakeServices)
    assert ("start", "kubelet") in host.services.calls


def test_without_the_cas_key_a_request_is_written_and_the_words_to_have_it_signed(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    expired(tree)
    tree.remove(f"{PKI}/ca.key")
    plan = fix.plan(Root(tmp_path), "cert-expired", NOW)
    assert "RequestCertificate" in [type(step).__name__ for step in plan.steps]
    assert any("ca.key is not on this node" in line and ".csr" in line for line in plan.by_hand)
    plan = local(plan)
    journal = DiskJournal(Root(tmp_path), plan.id)
    journal.start(encode(plan))
    carry_out(plan, host_of(tmp_path, plan), journal)
    assert tree.read(f"{PKI}/apiserver-kubelet-client.csr").startswith("-----BEGIN CERTIFICATE REQUEST")


def test_a_wrong_ca_is_for_a_person_to_decide(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    shutil.copy(tree.place(f"{PKI}/ca.crt"), tree.place(f"{PKI}/etcd/ca.crt"))
    plan = fix.plan(Root(tmp_path), "issuer-mismatch", NOW)
    assert plan.steps == ()
    assert all("put the right CA back" in line for line in plan.by_hand), plan.by_hand


def test_no_private_key_gets_into_a_plans_file(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    stale_ca(tree)
    expired(tree)
    for name in ("kubeconfig-ca-stale", "cert-expired"):
        data = encode(fix.plan(Root(tmp_path), name, NOW))
        assert b"PRIVATE KEY" not in data
        assert b"client-key-data" not in data


def test_what_has_another_command_is_named(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.addresses("192.0.2.120")
    plan = fix.plan(Root(tmp_path), "node-address-changed", NOW)
    assert plan.steps == ()
    assert any("drtool readdress" in line for line in plan.by_hand)


@pytest.mark.parametrize(
    ("name", "words"), [("cert-expired", "has found nothing"), ("no-such-check", "there is no check")]
)
def test_nothing_to_fix_is_said_so(name: str, words: str, tmp_path: Path) -> None:
    laid(tmp_path)
    with pytest.raises(UsageError, match=words):
        fix.plan(Root(tmp_path), name, NOW)


def test_etcd_is_asked_with_a_certificate_that_is_valid(tmp_path: Path) -> None:
    from drtool.plans.site import etcd_access

    tree = laid(tmp_path)
    assert etcd_access(tree.node()).cert == f"{PKI}/etcd/healthcheck-client.crt"
    leaf(tree, "etcd/healthcheck-client", life=1, authority="etcd/ca")
    assert etcd_access(tree.node()).cert == f"{PKI}/apiserver-etcd-client.crt"
    leaf(tree, "apiserver-etcd-client", life=1, authority="etcd/ca")
    assert etcd_access(tree.node()).cert == f"{PKI}/etcd/server.crt"


def test_each_member_is_defragmented_once_and_one_dead_one_removed(tmp_path: Path) -> None:
    from drtool.plans.fix import Case, Etcd, builders
    from drtool.plans.rebuild import Standing

    node = laid(tmp_path).node()
    urls = tuple(f"https://192.0.2.11{n}:2379" for n in (1, 2))
    dead = Standing("a1", "cp-3", ("https://192.0.2.113:2380",))
    case = Case(node, "p", "etcd-nospace", (), Etcd(urls, (dead,)))
    freed = [step for step in builders()["etcd-nospace"](case).steps if type(step).__name__ == "FreeSpace"]
    assert [step.access.endpoints[0] for step in freed] == ["https://127.0.0.1:2379", urls[1]]  # type: ignore[attr-defined]
    (removed,) = builders()["etcd-membership-stale"](case).steps
    assert "cp-3" in removed.describe()
    lost = Case(node, "p", "etcd-membership-stale", (), Etcd(urls[:1], (dead,)))
    assert builders()["etcd-membership-stale"](lost).steps == (), "without a majority nothing can be removed"
