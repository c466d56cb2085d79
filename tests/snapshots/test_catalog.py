from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from drtool.cli import backups
from drtool.core.errors import NotFound, Unsound, UsageError
from snapshots import catalog
from snapshots.catalog import Backup, Part, Record, Report, Rules, Verified, retain
from snapshots.inventory import Inventory

NOW = datetime(2026, 11, 30, 12, tzinfo=UTC)


def backup(
    at: datetime, verified: bool = True, reports: tuple[Report, ...] = (), cluster: str = "0" * 15 + "1"
) -> Backup:
    record = Record(
        id=catalog.new_id(at, 5),
        cluster_id=cluster,
        member_id="0" * 15 + "2",
        node="cp-1",
        taken_at=at,
        finished_at=at,
        endpoint="https://127.0.0.1:2379",
        etcd="3.5.1",
        kubernetes="v1.37.2",
        revision=5,
        compact_revision=-1,
        raft_index=9,
        raft_term=2,
        keys=1,
        keys_by_prefix={"/registry/pods/": 1},
        db=Part("db.zst", 1, "aa", 1, "bb"),
        verified=Verified(at, True) if verified else None,
    )
    return Backup(record, reports)


moments = st.integers(0, 400 * 24 * 60).map(lambda minutes: NOW - timedelta(minutes=minutes))
reports = st.one_of(
    st.just(()),
    st.tuples(st.builds(Report, kind=st.sampled_from(["verify", "drill"]), at=st.just(NOW), good=st.booleans())),
)
histories = st.lists(st.builds(backup, moments, st.booleans(), reports), max_size=60)
counts = st.integers(0, 20)
policies = st.builds(
    Rules,
    keep_last=counts,
    hourly=counts,
    daily=counts,
    weekly=counts,
    monthly=counts,
    minimum_count=counts,
    minimum_age=st.integers(0, 72).map(lambda hours: timedelta(hours=hours)),
)


@given(histories, policies)
@settings(max_examples=10_000, deadline=None)
def test_retention_never_loses_what_it_must_keep(history: list[Backup], rules: Rules) -> None:
    decision = retain(history, rules, NOW)
    dropped = {one.id for one in decision.drop}
    good = sorted((one for one in history if one.good), key=lambda one: (one.record.taken_at, one.id), reverse=True)

    assert dropped.isdisjoint(decision.keep)
    assert dropped | set(decision.keep) == {one.id for one in history}
    if not good:
        assert not dropped
        return
    assert good[0].id not in dropped
    assert dropped.isdisjoint(one.id for one in good[: max(rules.minimum_count, rules.keep_last)])
    assert all(NOW - one.record.taken_at >= rules.minimum_age for one in decision.drop)
    # an unverified one is not let go for another unverified one
    assert all(one.good or one.record.taken_at < good[0].record.taken_at for one in decision.drop)


@given(histories, policies)
@settings(max_examples=300, deadline=None)
def test_applying_it_again_drops_nothing_more(history: list[Backup], rules: Rules) -> None:
    decision = retain(history, rules, NOW)
    left = [one for one in history if one.id in decision.keep]
    assert retain(left, rules, NOW).drop == ()


@given(histories, policies)
@settings(max_examples=300, deadline=None)
def test_unverified_ones_never_push_a_verified_one_out(history: list[Backup], rules: Rules) -> None:
    with_all = retain(history, rules, NOW)
    without = retain([one for one in history if one.good], rules, NOW)
    assert {one.id for one in with_all.drop if one.good} == {one.id for one in without.drop}


def test_each_period_keeps_its_newest() -> None:
    history = [backup(NOW - timedelta(hours=6 * number)) for number in range(40)]
    rules = Rules(0, 0, 3, 0, 0, 0, timedelta(0))
    kept = [one.record.taken_at for one in history if one.id in retain(history, rules, NOW).keep]
    assert kept == [NOW, datetime(2026, 11, 29, 18, tzinfo=UTC), datetime(2026, 11, 28, 18, tzinfo=UTC)]


def test_what_was_found_bad_later_counts_no_more() -> None:
    old, new = backup(NOW - timedelta(days=2)), backup(NOW, reports=(Report("verify", NOW, False),))
    decision = retain([old, new], Rules(1, 0, 0, 0, 0, 1, timedelta(0)), NOW)
    assert old.id in decision.keep
    assert not new.good


SHALLOW, DEEP, DRILL = ("verify", False), ("verify", True), ("drill", True)


@pytest.mark.parametrize(
    ("looks", "good"),
    [
        ([(DEEP, False), (SHALLOW, True)], False),
        ([(DEEP, False), (SHALLOW, False), (SHALLOW, True)], False),
        ([(DEEP, False), (SHALLOW, True), (DEEP, True)], True),
        ([(DEEP, False), (DRILL, True)], True),
        ([(DRILL, False), (DEEP, True)], False),
        ([(DRILL, False), (DRILL, True)], True),
        ([(SHALLOW, False), (SHALLOW, True)], True),
        ([(SHALLOW, False), (DEEP, True)], True),
        ([(DRILL, True), (SHALLOW, False)], False),
        ([(DEEP, True), (SHALLOW, True)], True),
    ],
)
def test_a_bad_report_stands_until_a_look_as_deep(looks: list[tuple[tuple[str, bool], bool]], good: bool) -> None:
    found = [Report(kind, NOW, verdict, opened) for (kind, opened), verdict in looks]
    assert backup(NOW, reports=tuple(found)).good is good


def test_what_is_dated_in_the_future_stays_and_pushes_none_out() -> None:
    real, ahead = backup(NOW), backup(NOW + timedelta(days=3650))
    decision = retain([real, ahead], Rules(1, 0, 0, 0, 0, 1, timedelta(0)), NOW)
    assert decision.keep == {ahead.id: ("dated in the future",), real.id: ("newest", "last")}


def test_a_cluster_is_late_whatever_is_dated_in_the_future() -> None:
    found = Inventory((backup(NOW + timedelta(days=3650)), backup(NOW - timedelta(days=3))))
    assert backups._late(found, NOW, 86400.0) == [
        "stale: the newest verified backup of cluster 0000000000000001 is 72.0 h old"
    ]


def test_latest_is_the_newest_good_one() -> None:
    good, unverified = backup(NOW - timedelta(days=1)), backup(NOW, verified=False)
    assert catalog.choose([unverified, good]) is good
    with pytest.raises(NotFound):
        catalog.choose([unverified])
    after = backup(NOW, cluster="f" * 16)  # as a restore leaves it
    with pytest.raises(UsageError, match=r"2 clusters .* f{16} until 2026-.*, 0{15}1 until 2026-") as told:
        catalog.choose([good, after])
    assert "CLUSTER/latest" in told.value.hint
    assert catalog.choose([good, after], f"{'f' * 16}/latest") is after
    assert catalog.choose([good, after], f"{good.record.cluster_id}/latest") is good
    assert [catalog.can_name(text) for text in ("latest", "f" * 16 + "/latest", "/tmp/x", "x/latest")] == [
        True, True, False, False,
    ]  # fmt: skip


def test_latest_is_not_what_a_wrong_clock_dated() -> None:
    sound = replace(backup(NOW - timedelta(days=1)), received=NOW - timedelta(hours=23))
    misdated = replace(backup(NOW + timedelta(days=30)), received=NOW - timedelta(days=20))
    assert catalog.choose([misdated, sound]) is sound
    assert catalog.choose([misdated]) is misdated
    assert catalog.ahead(misdated, NOW + timedelta(days=60))
    assert (sound.moment, misdated.moment) == (NOW - timedelta(days=1), NOW - timedelta(days=20))
    spooled = replace(backup(NOW), received=NOW + timedelta(days=2))
    assert catalog.choose([spooled, sound]) is spooled


def test_a_part_of_an_id_is_enough() -> None:
    first, second = backup(NOW - timedelta(days=1)), backup(NOW)
    assert catalog.choose([first, second], second.id[-8:]) is second
    assert catalog.choose([first, second], f"{first.record.cluster_id}/{first.id}") is first
    with pytest.raises(UsageError, match="fits 2"):
        catalog.choose([first, second], "2026")
    with pytest.raises(NotFound):
        catalog.choose([first, second], "zzz")


def test_a_record_is_read_as_it_was_written() -> None:
    record = backup(NOW).record
    assert catalog.decode(catalog.encode(record), record.path) == record


def test_what_is_no_record_of_that_place_is_refused() -> None:
    record = backup(NOW).record
    for data, problem in (
        (b"", "no record"),
        (b"{}", "no record"),
        (b'{"format": 2}', "format 2"),
        (catalog.encode(record)[:-20], "no record"),
        (b'{"format": ' + b"[" * 100_000, "no record"),
        (catalog.encode(record).replace(b"2026-11-30T12:00:00Z", b"9999-12-31T23:59:59-14:00"), "no record"),
    ):
        with pytest.raises(Unsound, match=problem):
            catalog.decode(data, record.path)
    with pytest.raises(Unsound, match="belongs to"):
        catalog.decode(catalog.encode(record), f"{record.cluster_id}/elsewhere")


def test_report_names_say_what_they_hold() -> None:
    report = Report("drill", NOW, False)
    assert catalog.read_report(catalog.report_name(report)) == report
    assert catalog.read_report("record.json") is None
