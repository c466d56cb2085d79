"""Restores a whole node: the data directory is made and judged first, then one plan swaps it in."""

from __future__ import annotations

import hashlib
import secrets
import shutil
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from drtool.commands.whole_node import Lost, check_service_accounts, lay_ready, lost, overlaid
from drtool.config import Config
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.errors import CannotTell, DrtoolError, Refused, UsageError
from drtool.core.events import Listener, silent
from drtool.core.plan import Plan
from drtool.host.machine import Host
from drtool.host.root import Root
from drtool.plans import site
from drtool.plans.restore import need_etcd, restore
from manifests.identity import cluster_name
from manifests.network.addresses import address_of
from manifests.node import PKI, Node, read
from manifests.pod import image_tag
from manifests.steps.putting import staged
from snapshots import mvcc, versions
from snapshots import restore as restoring
from snapshots.bundle import Bundle
from snapshots.catalog import can_name
from snapshots.membership import NewCluster, NewMember, new_cluster, parse_initial_cluster
from snapshots.mvcc import Index
from snapshots.registry import encryption
from snapshots.restore import DEFAULT_BUMP, Restoration, Restored
from snapshots.versions import Line

ROOT_CA = (b"/registry/configmaps/kube-system/kube-root-ca.crt", b"/registry/configmaps/kube-public/cluster-info")
SECRETS = b"/registry/secrets/"
ENCRYPTION_FLAG = "encryption-provider-config"


@dataclass(frozen=True, slots=True)
class Wanted:
    """What a person asks for. `members` is NAME=URL,... where several nodes are restored from the same backup."""

    source: str
    members: str = ""
    token: str = ""
    bump: int = DEFAULT_BUMP
    clear_alarms: bool = False
    force: bool = False


@dataclass(frozen=True, slots=True)
class NodeRestore:
    """A restore that was planned: `pieces` gives the snapshot's bytes (its trailer included) once they are wanted."""

    plan: Plan[Host]
    node: Node = field(repr=False)
    source: Path | Fetched
    how: Restoration
    lost: Lost = field(default_factory=Lost, repr=False)


@dataclass(frozen=True, slots=True)
class Fetched:
    """A backup in the store, to be streamed."""

    config: Config = field(repr=False)
    id: str
    sha256: str
    taken_at: datetime
    counts: dict[str, int]
    bundle: Bundle | None = field(default=None, repr=False)


def planned(root: Root, wanted: Wanted, config: Config) -> NodeRestore:
    """The plan, before anything is read from the store but the record. Raises what `choose` raises, and Refused."""
    found = read(root)
    try:
        source = source_of(wanted.source, config, with_bundle=True)
        bundle = source.bundle if isinstance(source, Fetched) else None
        gone = lost(root, found, bundle) if bundle else Lost()
        node = overlaid(found, gone.files)
        etcd = need_etcd(node)
        if bundle and not wanted.force:
            check_service_accounts(node, bundle)
        digest = source.sha256 if isinstance(source, Fetched) else _sha256(source)
        cluster = _cluster(node, wanted, digest)
        name = etcd.value("name", "default")
        cluster.member(name)
        how = Restoration(
            cluster, name, wanted.bump, target=_line(image_tag(etcd.container.image)), clear_alarms=wanted.clear_alarms
        )
        plan = site.plan_id("restore", datetime.now(UTC))
        shown = source.id if isinstance(source, Fetched) else str(source)
        counts = source.counts if isinstance(source, Fetched) else {}
        names = tuple(one.name for one in cluster.members)
        draft = restore(node, plan, f"restore etcd of {name} from {shown}", counts, names, gone.steps())
    except EvidenceMissing as gap:
        raise CannotTell(f"the node cannot be read well enough for a plan: {gap}") from gap
    differing = tuple(f"{path} is not as it was in the backup: it was left as it is" for path in gone.differing)
    by_hand = (*_moved(node), *_elsewhere(node, wanted, cluster, name), *differing)
    whole = Plan(plan, draft.title, cluster_name(node), draft.steps, by_hand)
    return NodeRestore(whole, node, source, how, gone)


def prepare(root: Root, wanted: NodeRestore, force: bool = False, listener: Listener = silent) -> Restored:
    """Makes the data directory beside the present one, and judges it; nothing is stopped yet.

    Raises Refused where it is another cluster's, of an unknown encryption key, or where the clock cannot be right; then
    what was made is removed again.
    """
    if not force:
        check_clock(wanted)
    data_dir = site.data_dir(need_etcd(wanted.node))
    if root.read(data_dir, 0).kind == "absent":
        (root.directory / data_dir.lstrip("/")).mkdir(mode=0o700, parents=True)
    target = _own(root, wanted) / "new"
    target.parent.mkdir(mode=0o700)
    try:
        made = restoring.restore(pieces(wanted.source, listener), target, wanted.how, listener)
        if not force:
            with mvcc.opened(target / "member/snap/db") as keyspace:
                judge(wanted.node, keyspace.index())
        lay_ready(root, wanted.plan.id, wanted.lost.files)
        return made
    except BaseException:
        discard(root, wanted)
        raise


def discard(root: Root, wanted: NodeRestore) -> None:
    """Removes what `prepare` made: the cluster's data and keys in plain, which no plan that was begun knows of."""
    ready = root.directory / staged(wanted.plan.id, "").lstrip("/")
    with suppress(OSError):  # there may be no data directory yet
        shutil.rmtree(_own(root, wanted), ignore_errors=True)
    shutil.rmtree(ready, ignore_errors=True)
    with suppress(OSError):  # the plan's own file may be there
        ready.parent.rmdir()


def _own(root: Root, wanted: NodeRestore) -> Path:
    return root.locate(site.data_dir(need_etcd(wanted.node))) / f".drtool-{wanted.plan.id}"


def judge(node: Node, index: Index) -> None:
    """Whether these objects can be this cluster's: its CA is in them, and its API server has the keys to read them."""
    ca = site.file_data(node, f"{PKI}/ca.crt").strip()
    found = [kv.value for key in ROOT_CA if (kv := index.get(key)) is not None]
    plain = [value for value in found if b"-----BEGIN CERTIFICATE" in value]
    if plain and ca and not any(ca in value for value in plain):
        raise Refused(
            "the backup is of another cluster: its CA is not this node's /etc/kubernetes/pki/ca.crt",
            "choose this cluster's backup; or restore its PKI first; --force goes on regardless",
        )
    missing = sorted(set(_sealed_by(index)) - set(_keys(node)))
    if missing:
        raise Refused(
            f"the backup has Secrets encrypted with {', '.join(missing)}, which this node's API server does not have",
            "put the encryption configuration of that time back first (it is in the node bundle); --force goes on",
        )


def _sealed_by(index: Index) -> Iterator[str]:
    for kv in index.prefix(SECRETS):
        with suppress(encryption.Locked):
            found = encryption.seal(kv.value)
            if found is not None and found.provider != "kms":
                yield f"{found.provider} key {found.key}"


def _keys(node: Node) -> tuple[str, ...]:
    apiserver = site.present(node, "kube-apiserver")
    named = apiserver.value(ENCRYPTION_FLAG) if apiserver else ""
    if apiserver is None or not named:
        return ()
    path = apiserver.container.host_path(named) or named
    try:
        return encryption.parse(node.text(path), path).names()
    except (EvidenceMissing, DrtoolError):
        return ()


def check_clock(wanted: NodeRestore) -> None:
    """A clock that is a year off makes every certificate invalid, and leases and backups nonsense."""
    now = datetime.now(UTC)
    if isinstance(wanted.source, Fetched) and wanted.source.taken_at > now:
        raise Refused(
            f"this machine's clock says {now:%Y-%m-%d %H:%M} UTC, before the backup was taken "
            f"({wanted.source.taken_at:%Y-%m-%d %H:%M} UTC)",
            "set the clock first (chronyc makestep, timedatectl); --force goes on regardless",
        )
    with suppress(EvidenceMissing):
        ca = wanted.node.certificate(f"{PKI}/ca.crt")
        if not ca.not_before <= now <= ca.not_after:
            raise Refused(
                f"by this machine's clock ({now:%Y-%m-%d} UTC) the cluster's CA is not valid "
                f"({ca.not_before:%Y-%m-%d} to {ca.not_after:%Y-%m-%d})",
                "set the clock first (chronyc makestep, timedatectl); --force goes on regardless",
            )


def source_of(source: str, config: Config, with_bundle: bool = False) -> Path | Fetched:
    """A file where there is one of that name, else a backup of the store."""
    if not source:
        raise UsageError("which backup? Give a snapshot file, a backup's id, or latest")
    if Path(source).exists():
        return Path(source).absolute()
    if not can_name(source):
        raise UsageError(f"{source}: no such file", "give a snapshot file, a backup's id, or latest")
    from drtool.commands import fetch

    shelf, backup = fetch.named(config, source)
    record = backup.record
    bundle = fetch.node_bundle(shelf, backup) if with_bundle else None
    return Fetched(config, record.id, record.db.plain_sha256, record.taken_at, record.keys_by_prefix, bundle)


def pieces(source: Path | Fetched, listener: Listener = silent) -> Path | Iterator[bytes]:
    """What `snapshots.restore` takes: the file itself, or the backup's bytes as they are opened."""
    if isinstance(source, Path):
        return source
    from drtool.commands import fetch

    shelf = fetch.shelf(source.config)
    return fetch.db_pieces(shelf, shelf.choose(source.id), listener)


def _sha256(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _cluster(node: Node, wanted: Wanted, digest: str) -> NewCluster:
    """One token for all members of one restore; it ends with the snapshot's hash, so that no other one fits it."""
    token = wanted.token or f"drtool-{secrets.token_hex(4)}-{digest[:16]}"
    if not token.endswith(digest[:16]):
        raise Refused(
            "the token is of another backup: all members must be restored from the same one",
            "use the backup that the first node was restored from, or begin again there",
        )
    if wanted.members:
        return new_cluster(parse_initial_cluster(wanted.members), token)
    etcd = need_etcd(node)
    return new_cluster((NewMember(etcd.value("name", "default"), etcd.names("initial-advertise-peer-urls")),), token)


def _line(tag: str) -> Line | None:
    try:
        return versions.parse(tag.partition("-")[0])
    except UsageError:
        return None


def _moved(node: Node) -> Iterator[str]:
    """The files of the backup may know this node by an address that it has no more."""
    with suppress(EvidenceMissing, NotApplicable):
        address = address_of(site.advertised(node))
        if address is not None and not node.addresses.has(address):
            yield f"this node has no address {address} any more: first set it, or afterwards run drtool readdress"


def _elsewhere(node: Node, wanted: Wanted, cluster: NewCluster, own: str) -> Iterator[str]:
    others = [one.name for one in cluster.members if one.name != own]
    if others:
        yield (
            f"on {', '.join(others)}, while this one waits for them: drtool restore {Path(wanted.source).name} --node "
            f"--members {wanted.members} --token {cluster.token} --apply"
        )
        yield "restart the kubelet of every worker afterwards: systemctl restart kubelet"
        return
    known = {part.partition("=")[0] for part in need_etcd(node).names("initial-cluster")} - {own}
    if known:
        yield (
            f"{', '.join(sorted(known))}: their members are of the old cluster; empty and join them afterwards, one by "
            "one: drtool restore --node --join https://THIS-NODE:2379 --apply"
        )
    yield "restart the kubelet of every other node afterwards: systemctl restart kubelet"
    yield "take a backup at once: drtool backup"
