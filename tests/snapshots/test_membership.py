from __future__ import annotations

import pytest

from drtool.core.errors import UsageError
from snapshots.membership import NewCluster, NewMember, new_cluster, parse_initial_cluster

THREE = "a=http://127.0.0.1:1001,b=http://127.0.0.1:1002,c=http://127.0.0.1:1003"


def test_ids_are_those_that_etcdutl_gives() -> None:
    cluster = new_cluster(parse_initial_cluster(THREE), "tok")
    assert cluster.cluster_id == 0xB144F6E17D320A6
    assert [(f"{one.id:x}", one.name) for one in cluster.identified] == [
        ("5facfb90b61b458a", "c"), ("9288313ba1867e46", "b"), ("f81ee44e01b35da3", "a"),
    ]  # fmt: skip


def test_the_token_sets_clusters_apart_and_the_name_does_not() -> None:
    def of(name: str, token: str) -> NewCluster:
        return new_cluster([NewMember(name, ("http://127.0.0.1:1",))], token)

    assert of("a", "x").cluster_id == of("b", "x").cluster_id
    assert of("a", "x").cluster_id != of("a", "y").cluster_id


def test_a_name_may_have_several_urls_in_any_order() -> None:
    one = parse_initial_cluster("a=http://127.0.0.1:1,a=http://127.0.0.1:2")
    other = parse_initial_cluster("a=http://127.0.0.1:2,a=http://127.0.0.1:1")
    assert new_cluster(one).cluster_id == new_cluster(other).cluster_id


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a", "no NAME=URL"),
        ("=http://127.0.0.1:1", "no NAME=URL"),
        ("a=127.0.0.1:2380", "scheme must be"),
        ("a=ftp://127.0.0.1:2380", "scheme must be"),
        ("a=http://127.0.0.1", "needs a host and a port"),
        ("a=http://127.0.0.1:99999", "Port out of range"),
        ("a=http://127.0.0.1:1/path", "nothing may follow"),
        ("a=http://127.0.0.1:1,b=http://127.0.0.1:1", "given twice"),
        (",".join(f"m{n}=http://127.0.0.1:{n + 1}" for n in range(8)), "one to 7"),
    ],
)
def test_what_etcd_refuses_is_refused(text: str, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        new_cluster(parse_initial_cluster(text))


def test_seven_members_are_taken() -> None:
    text = ",".join(f"m{n}=https://192.0.2.{n}:2380" for n in range(7))
    assert len(new_cluster(parse_initial_cluster(text)).identified) == 7


def test_an_unknown_name_lists_the_known_ones() -> None:
    with pytest.raises(UsageError, match="no member 'd' among a, b, c"):
        new_cluster(parse_initial_cluster(THREE)).member("d")
