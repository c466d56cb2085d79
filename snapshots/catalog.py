"""What a store holds: records, choosing one, and which ones retention lets go. Pure.

A backup lies at CLUSTER-ID/BACKUP-ID/ below the store's prefix. Its record is the commit: what has none is no backup.
"""

from __future__ import annotations

import re
import secrets
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta

import msgspec

from drtool.core.errors import NotFound, Unsound, UsageError

FORMAT = 1
SKEW = timedelta(hours=1)
"""By so much the clocks of two nodes may differ without a word."""
RECORD, SIGNATURE = "record.json", "record.json.sig"
CLUSTER = re.compile(r"[0-9a-f]{16}")
ID = re.compile(r"(\d{8}T\d{6}Z)-(\d+)-([0-9a-f]{6,})")
REPORT = re.compile(r"(verify|drill)-(\d{8}T\d{6}Z)-(good|bad)\.json")
STAMP = "%Y%m%dT%H%M%SZ"


class Part(msgspec.Struct, frozen=True, rename="camel"):
    """One object of a backup: bytes and sha256 (lower hex) before and after sealing."""

    name: str
    plain_size: int
    plain_sha256: str
    sealed_size: int
    sealed_sha256: str


class Verified(msgspec.Struct, frozen=True, rename="camel"):
    """The read-back: every sealed byte was compared; `opened` too, where this run could (it always can)."""

    at: datetime
    opened: bool


class Record(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    """record.json, format 1. Fields may be added; a higher number means that older readers must not try.

    Ids are lower hex of 16 digits. `revision`, `raft_index` and `keys_by_prefix` come from inside the db. `verified` is
    absent where the stored bytes could not be read back. `incomplete` names what the node bundle misses.
    """

    format: int = FORMAT
    id: str
    cluster_id: str
    member_id: str
    node: str
    taken_at: datetime
    finished_at: datetime
    endpoint: str
    etcd: str
    kubernetes: str
    revision: int
    compact_revision: int
    raft_index: int
    raft_term: int
    keys: int
    keys_by_prefix: dict[str, int]
    db: Part
    bundle: Part | None = None
    incomplete: tuple[str, ...] = ()
    sealed_for: tuple[str, ...] = ()
    read_back_key: str = ""
    signer: str = ""
    verified: Verified | None = None
    drtool: str = ""

    @property
    def path(self) -> str:
        return f"{self.cluster_id}/{self.id}"

    @property
    def parts(self) -> tuple[Part, ...]:
        return (self.db,) if self.bundle is None else (self.db, self.bundle)


@dataclass(frozen=True, slots=True)
class Report:
    """A later look at a stored backup: kind "verify" or "drill"; `opened` is False where only sealed bytes were seen.

    The name does not hold `opened`, the body does: `inventory.read` asks for it where it decides something.
    """

    kind: str
    at: datetime
    good: bool
    opened: bool = True

    @property
    def depth(self) -> int:
        """0: the stored bytes were compared; 1: the db in them too; 2: etcd ran on it."""
        return 2 if self.kind == "drill" else int(self.opened)


@dataclass(frozen=True, slots=True)
class Backup:
    """A backup in the store, with what was found out about it later, oldest first.

    `received` is when the store got its record, by the store's own clock.
    """

    record: Record
    reports: tuple[Report, ...] = ()
    signed: bool = False
    size: int = 0
    received: datetime | None = None

    @property
    def id(self) -> str:
        return self.record.id

    @property
    def good(self) -> bool:
        """Verified, and not found bad since."""
        return self.record.verified is not None if self.verdict is None else self.verdict.good

    @property
    def verdict(self) -> Report | None:
        """The report that stands: the last one, but a bad one stands until a look at least as deep comes after it."""
        stands: Report | None = None
        for report in self.reports:
            if stands is None or stands.good or report.depth >= stands.depth:
                stands = report
        return stands

    @property
    def misdated(self) -> bool:
        """Dated later than the store got it: the clock of the node that took it was wrong."""
        return self.received is not None and self.record.taken_at > self.received + SKEW

    @property
    def moment(self) -> datetime:
        """When it was taken; by the store's clock where that of the node was wrong."""
        return self.received if self.received is not None and self.misdated else self.record.taken_at

    def last(self, kind: str) -> Report | None:
        return next((report for report in reversed(self.reports) if report.kind == kind), None)


def new_id(at: datetime, revision: int) -> str:
    """TIME-REVISION-RANDOM. The name is needed before the stream has told the db's own revision: here it is the
    member's when the stream was asked for, and so at most that of the record, which comes from inside the db.
    """
    return f"{at.astimezone(UTC):{STAMP}}-{revision}-{secrets.token_hex(4)}"


def time_of(backup_id: str) -> datetime:
    match = ID.fullmatch(backup_id)
    if not match:
        raise UsageError(f"{backup_id!r} is no backup id", "`drtool backups` lists them")
    return datetime.strptime(match[1], STAMP).replace(tzinfo=UTC)


def report_name(report: Report) -> str:
    return f"{report.kind}-{report.at.astimezone(UTC):{STAMP}}-{'good' if report.good else 'bad'}.json"


def read_report(name: str) -> Report | None:
    match = REPORT.fullmatch(name)
    if not match:
        return None
    return Report(match[1], datetime.strptime(match[2], STAMP).replace(tzinfo=UTC), match[3] == "good")


def encode(record: Record) -> bytes:
    return msgspec.json.format(msgspec.json.encode(record), indent=1) + b"\n"


def decode(data: bytes, path: str) -> Record:
    """The record at `path` (CLUSTER-ID/BACKUP-ID); Unsound where it is none, or tells of another place."""
    try:
        kind = msgspec.json.decode(data, type=_Format).format
    except (msgspec.MsgspecError, RecursionError) as wrong:
        raise Unsound(f"{path}/{RECORD} is no record: {wrong}", "it was damaged in the store") from wrong
    if kind > FORMAT:
        raise Unsound(f"{path} was written in format {kind}; this drtool reads {FORMAT}", "use a newer drtool")
    try:
        record = msgspec.json.decode(data, type=Record)
        record.taken_at.astimezone(UTC)
    except (msgspec.MsgspecError, RecursionError, OverflowError) as wrong:
        raise Unsound(f"{path}/{RECORD} is no record: {wrong}", "it was damaged in the store") from wrong
    if record.path != path or not all(re.fullmatch(r"[a-z]+(\.[a-z]+)*", part.name) for part in record.parts):
        raise Unsound(f"{path}/{RECORD} belongs to {record.path}", "it was copied or renamed: not to be trusted")
    return record


class _Format(msgspec.Struct):
    format: int


def choose(backups: Iterable[Backup], wanted: str = "latest", cluster: str = "") -> Backup:
    """`latest` (the newest good one), an id, or a part of one that fits only one; each as CLUSTER/... for one cluster.

    Raises NotFound, UsageError.

    The latest is no misdated one, as far as there is another. This machine's clock is not asked: a rescue system's may
    be years off.
    """
    named, _, name = wanted.rpartition("/")
    cluster = named or cluster
    known = [one for one in backups if not cluster or one.record.cluster_id == cluster]
    if name == "latest":
        good = [one for one in known if one.good]
        clusters = {one.record.cluster_id for one in good}
        if len(clusters) > 1:
            raise UsageError(
                f"the store holds backups of {len(clusters)} clusters (a restore makes a new one): {_dated(good)}",
                "name a backup, or one of them: CLUSTER/latest",
            )
        if not good:
            newest = max(known, key=lambda one: one.record.taken_at, default=None)
            hint = f"; the newest, {newest.id}, can be tried by its name" if newest else ""
            raise NotFound("the store holds no verified backup", f"`drtool backups` lists what it holds{hint}")
        dated = [one for one in good if not one.misdated] or good
        return max(dated, key=lambda one: one.record.taken_at)
    fitting = [one for one in known if one.id == name] or [one for one in known if name in one.id]
    if not fitting:
        raise NotFound(f"the store holds no backup {wanted}", "`drtool backups` lists what it holds")
    if len(fitting) > 1:
        raise UsageError(f"{wanted} fits {len(fitting)} backups", "give more of the id")
    return fitting[0]


def can_name(text: str) -> bool:
    """Whether a backup may be called that: not with a slash, but for CLUSTER/latest and CLUSTER/ID."""
    cluster, slash, _ = text.rpartition("/")
    return not slash or CLUSTER.fullmatch(cluster) is not None


def _dated(backups: Iterable[Backup]) -> str:
    """Each cluster with the time of its newest backup, the newest first."""
    newest: dict[str, datetime] = {}
    for one in backups:
        newest[one.record.cluster_id] = max(one.moment, newest.get(one.record.cluster_id, one.moment))
    ordered = sorted(newest.items(), key=lambda item: item[1], reverse=True)
    return ", ".join(f"{cluster} until {at:%Y-%m-%d %H:%M} UTC" for cluster, at in ordered)


@dataclass(frozen=True, slots=True)
class Rules:
    """How many to keep by each rule; `minimum_count` and `minimum_age` override all."""

    keep_last: int = 24
    hourly: int = 48
    daily: int = 14
    weekly: int = 8
    monthly: int = 12
    minimum_count: int = 3
    minimum_age: timedelta = timedelta(days=1)


@dataclass(frozen=True, slots=True)
class Decision:
    """What stays, with the reasons, and what goes, oldest first."""

    keep: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    drop: tuple[Backup, ...] = ()


PERIODS = {"hourly": "%Y-%m-%dT%H", "daily": "%Y-%m-%d", "weekly": "%G-W%V", "monthly": "%Y-%m"}


def ahead(backup: Backup, now: datetime) -> bool:
    """Dated in the future, or later than the store got it: some clock was wrong. Its age is not known, and others are
    not judged by it.
    """
    return backup.record.taken_at > now + SKEW or backup.misdated


def retain(backups: Iterable[Backup], rules: Rules, now: datetime) -> Decision:
    """Which backups of ONE cluster stay. Only good ones count for a rule; each period keeps its newest.

    Never dropped: the newest good one, the newest `minimum_count` good ones, anything younger than `minimum_age`, what
    is dated in the future (it counts for no rule), and, where no backup is good, anything at all. One that is not good
    goes when it is old and a newer good one exists.
    """
    by_time = sorted(backups, key=lambda one: (one.record.taken_at, one.id), reverse=True)
    newest_first = [one for one in by_time if not ahead(one, now)]
    good = [one for one in newest_first if one.good]
    reasons: dict[str, list[str]] = {}

    def keep(one: Backup, why: str) -> None:
        reasons.setdefault(one.id, []).append(why)

    for one in by_time:
        if ahead(one, now):
            keep(one, "dated in the future")
    for one in good[: max(rules.minimum_count, 1)]:
        keep(one, "minimum" if one is not good[0] else "newest")
    for one in good[: rules.keep_last]:
        keep(one, "last")
    for rule, pattern in PERIODS.items():
        for one in _newest_of_each(good, pattern)[: getattr(rules, rule)]:
            keep(one, rule)
    for one in newest_first:
        if now - one.record.taken_at < rules.minimum_age:
            keep(one, "young")
        elif not good:
            keep(one, "none is verified")
        elif not one.good and one.record.taken_at >= good[0].record.taken_at:
            keep(one, "newer than any verified")
    drop = tuple(one for one in reversed(newest_first) if one.id not in reasons)
    return Decision({name: tuple(why) for name, why in reasons.items()}, drop)


def _newest_of_each(newest_first: list[Backup], pattern: str) -> list[Backup]:
    found: dict[str, Backup] = {}
    for one in newest_first:
        found.setdefault(one.record.taken_at.astimezone(UTC).strftime(pattern), one)
    return list(found.values())
