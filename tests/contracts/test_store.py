"""What every store promises; runs on each of them, bare and behind the retrying wrapper."""

from __future__ import annotations

import os
import secrets
import threading
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
from botocore.awsrequest import AWSResponse

from drtool.core.errors import UsageError
from snapshots.scratch_s3 import Server
from snapshots.stores.directory import DirectoryStore
from snapshots.stores.retrying import Patience, RetryingStore
from snapshots.stores.s3 import connect
from snapshots.stores.store import KeyExists, KeyMissing, Store, StoreFailed, pieces, whole

PART = 5 << 20  # the smallest part that S3 takes, but for the last


def silent(params: dict[str, Any], **_: object) -> None:
    """As a store that has never heard of CRC-32C."""
    params["headers"].pop("x-amz-checksum-algorithm", None)


def refusing(model: Any, params: dict[str, Any], **_: object) -> tuple[AWSResponse, dict[str, Any]] | None:
    """As a store that takes no header it does not know."""
    if "x-amz-checksum-algorithm" not in params["headers"]:
        return None
    said = {"Error": {"Code": "NotImplemented", "Message": "A header you provided implies functionality"}}
    return AWSResponse(params["url"], 501, {}, None), {**said, "ResponseMetadata": {"HTTPStatusCode": 501}}


OLD = {"s3 before CRC-32C": silent, "s3 that refuses CRC-32C": refusing}


@pytest.fixture(params=["directory", "s3", *OLD, "directory, retrying", "s3, retrying"])
def store(request: pytest.FixtureRequest, tmp_path: Path) -> Store:
    kind, _, retrying = request.param.partition(", ")
    if kind == "directory":
        found: Store = DirectoryStore(tmp_path / "store")
        (tmp_path / "store").mkdir()
    else:
        server: Server = request.getfixturevalue("s3_server")
        prefix = f"contract/{secrets.token_hex(6)}"
        found = connect(server.bucket, prefix, server.config(prefix), 30, server.credentials)
        if kind in OLD:
            found.client.meta.events.register("before-call.s3.CreateMultipartUpload", OLD[kind])
    return RetryingStore(found, Patience(30)) if retrying else found


def keys(store: Store, prefix: str = "") -> list[str]:
    return [stored.key for stored in store.list(prefix)]


def test_what_was_put_is_there(store: Store) -> None:
    store.put("a/b.json", b"hello")
    assert store.read("a/b.json", 0, 100) == b"hello"
    assert store.size("a/b.json") == 5
    assert whole(store, "a/b.json") == b"hello"


def test_an_empty_object_is_an_object(store: Store) -> None:
    store.put("empty", b"")
    assert store.size("empty") == 0
    assert store.read("empty", 0, 10) == b""
    assert list(pieces(store, "empty")) == []
    assert keys(store) == ["empty"]


def test_put_replaces(store: Store) -> None:
    store.put("k", b"one, longer")
    store.put("k", b"two")
    assert whole(store, "k") == b"two"


def test_a_conditional_put_never_replaces(store: Store) -> None:
    store.put("k", b"one", if_absent=True)
    with pytest.raises(KeyExists):
        store.put("k", b"two", if_absent=True)
    assert whole(store, "k") == b"one"


def test_of_many_conditional_puts_at_once_one_wins(store: Store) -> None:
    won: list[int] = []
    start = threading.Barrier(8)

    def put(number: int) -> None:
        start.wait()
        try:
            store.put("lock", str(number).encode(), if_absent=True)
            won.append(number)
        except KeyExists:
            pass

    threads = [threading.Thread(target=put, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(won) == 1
    assert whole(store, "lock") == str(won[0]).encode()


def test_ranges(store: Store) -> None:
    store.put("k", b"0123456789")
    assert store.read("k", 2, 3) == b"234"
    assert store.read("k", 8, 10) == b"89"
    assert store.read("k", 10, 5) == b""
    assert store.read("k", 0, 0) == b""


def test_parts_in_any_order_and_twice_make_the_object(store: Store) -> None:
    data = os.urandom(2 * PART + 1000)
    upload = store.begin("big", PART)
    tags = {}
    for number in (3, 1, 2, 1):
        tags[number] = store.part(upload, number, data[(number - 1) * PART : number * PART])
    store.complete(upload, tuple(tags[number] for number in sorted(tags)))
    assert store.size("big") == len(data)
    assert b"".join(pieces(store, "big", length=3 << 20)) == data


def test_parts_are_checked_by_what_the_store_knows(store: Store, request: pytest.FixtureRequest) -> None:
    kind = request.node.callspec.params["store"].partition(",")[0]
    upload = store.begin("k", PART)
    assert upload.checksum == {"s3": "CRC32C"}.get(kind, "")
    store.complete(upload, (store.part(upload, 1, b"1" * PART), store.part(upload, 2, b"2")))
    assert whole(store, "k") == b"1" * PART + b"2"


def test_parts_may_be_sent_by_several_threads(store: Store) -> None:
    data = os.urandom(4 * PART)
    upload = store.begin("big", PART)
    tags: dict[int, str] = {}

    def send(number: int) -> None:
        tags[number] = store.part(upload, number, data[(number - 1) * PART : number * PART])

    threads = [threading.Thread(target=send, args=(number,)) for number in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    store.complete(upload, tuple(tags[number] for number in sorted(tags)))
    assert b"".join(pieces(store, "big")) == data


def test_an_upload_is_invisible_until_it_is_complete(store: Store) -> None:
    upload = store.begin("a/big", PART)
    tag = store.part(upload, 1, b"x" * 100)
    assert keys(store) == []
    with pytest.raises(KeyMissing):
        store.size("a/big")
    store.complete(upload, (tag,))
    assert keys(store) == ["a/big"]


def test_completing_again_is_no_error(store: Store) -> None:
    upload = store.begin("big", PART)
    tags = (store.part(upload, 1, b"x" * 100),)
    store.complete(upload, tags)
    store.complete(upload, tags)
    assert store.size("big") == 100


def test_an_aborted_upload_is_gone(store: Store) -> None:
    upload = store.begin("a/big", PART)
    tag = store.part(upload, 1, b"x" * 100)
    store.abort(upload)
    store.abort(upload)
    with pytest.raises(StoreFailed):
        store.complete(upload, (tag,))
    assert keys(store) == []


def test_what_is_missing_says_so(store: Store) -> None:
    for ask in (lambda: store.size("no/such"), lambda: store.read("no/such", 0, 1), lambda: whole(store, "no/such")):
        with pytest.raises(KeyMissing):
            ask()


def test_deleting_twice_is_no_error(store: Store) -> None:
    store.put("a/k", b"x")
    store.delete("a/k")
    store.delete("a/k")
    assert keys(store) == []


def test_putting_and_deleting_side_by_side_never_fails(store: Store) -> None:
    """Each takes its object away again, and with it, in a directory, the place where the others put theirs."""
    start, failed = threading.Barrier(6), []

    def busy(number: int) -> None:
        start.wait()
        try:
            for _ in range(25):
                store.put(f"a/b/{number}", b"x")
                store.abort(store.begin(f"a/c/{number}", PART))
                store.delete(f"a/b/{number}")
        except StoreFailed as error:
            failed.append(error)

    threads = [threading.Thread(target=busy, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failed == []
    assert keys(store) == []


def test_a_listing_is_by_prefix_and_in_order(store: Store) -> None:
    for name in ("b/2", "a/1", "b/10", "b/1/x", "c"):
        store.put(name, name.encode())
    assert keys(store) == ["a/1", "b/1/x", "b/10", "b/2", "c"]
    assert keys(store, "b/") == ["b/1/x", "b/10", "b/2"]
    assert keys(store, "nothing/") == []
    sizes = {stored.key: stored.size for stored in store.list("b/")}
    assert sizes == {"b/1/x": 5, "b/10": 4, "b/2": 3}


def test_a_listing_is_whole_beyond_one_page(store: Store) -> None:
    names = [f"many/{number:04d}" for number in range(1005)]
    for name in names:
        store.put(name, b"")
    assert keys(store, "many/") == names


def test_the_store_has_a_clock(store: Store) -> None:
    before = datetime.now(UTC) - timedelta(seconds=5)
    store.put("k", b"x")
    (stored,) = store.list("")
    assert before <= stored.modified <= datetime.now(UTC) + timedelta(seconds=5)


def test_sweeping_forgets_old_uploads_alone(store: Store) -> None:
    store.put("a/done", b"x")
    for name in ("a/one", "b/two"):
        store.part(store.begin(name, PART), 1, b"x" * 100)
    now = datetime.now(UTC)
    assert store.sweep("", now - timedelta(days=1)) == 0
    assert store.sweep("a/", now + timedelta(minutes=1)) == 1
    assert store.sweep("", now + timedelta(minutes=1)) == 1
    assert store.sweep("", now + timedelta(minutes=1)) == 0
    assert keys(store) == ["a/done"]


@pytest.mark.parametrize("key", ["", "/k", "a//b", "../k", "a/../../k", "a/.", "k.part", "a\0b"])
def test_names_that_lead_elsewhere_are_refused(store: Store, key: str) -> None:
    with pytest.raises(UsageError):
        store.put(key, b"x")


def test_its_url_holds_no_secret(store: Store, request: pytest.FixtureRequest) -> None:
    assert "@" not in store.url
    if store.url.startswith("s3:"):
        server: Server = request.getfixturevalue("s3_server")
        assert server.credentials.secret_key not in repr(store) + store.url
