"""etcd's members: ids, names, counts, URLs."""

from __future__ import annotations

import json
import shutil

from snapshots.cluster import Member
from tests.builders import member as mem
from tests.incidents.trials.stored import (
    db,
    ids,
    line,
)
from tests.incidents.trials.trial import Copy, Trials, beside

TRIALS = Trials()
on = TRIALS.on


@on(
    "etcd-cluster-id-mismatch-started-as-new",
    "ha-vip-cp2-1.37 ha-vip-cp1-1.37",
    "etcd-initial-state-wrong",
    "etcd-cluster-id-mismatch",
)
def log_and_flag(t: Copy) -> None:
    t.flag("etcd", "initial-cluster-state", "new")
    t.says(
        "etcd",
        line(
            "warn",
            "request sent was ignored by remote peer due to cluster ID mismatch",
            caller="rafthttp/stream.go:653",
            **{
                "remote-peer-id": "8211f1d0f64f3269",
                "remote-peer-cluster-id": "cdf818194e3a8c32",
                "local-member-id": "91bc3c398fb3c146",
                "local-member-cluster-id": "7e27652122e8b2ae",
                "error": "cluster ID mismatch",
            },
        ),
    )


@on(
    "etcd-cluster-id-mismatch-started-as-new", "ha-vip-cp2-1.37", "etcd-initial-state-wrong", "etcd-cluster-id-mismatch"
)
def peer_side_log(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "error",
            "request cluster ID mismatch",
            caller="rafthttp/http.go:500",
            **{
                "local-member-id": "91bc",
                "remote-peer-id": "a",
                "remote-peer-cluster-id": "cdf818194e3a8c32",
                "local-member-cluster-id": "7e27652122e8b2ae",
            },
        ),
    )


@on(
    "etcd-cluster-id-mismatch-started-as-new",
    "ha-vip-cp2-1.37 lab-one-door-cp2-1.37",
    "etcd-initial-state-wrong",
    "etcd-cluster-id-mismatch",
    "etcd-initial-state-wrong,endpoint-is-one-node",
)
def new_with_empty_dir(t: Copy) -> None:
    t.flag("etcd", "initial-cluster-state", "new")
    t.remove("/var/lib/etcd/member")


@on(
    "etcd-cluster-id-mismatch-started-as-new",
    "ha-vip-cp1-1.37+ha-vip-cp2-1.37",
    "etcd-initial-state-wrong",
    "etcd-cluster-id-mismatch",
    "etcd-cluster-id-mismatch,encryption-keys-vs-data",
)
def two_trees(a: Copy, b: Copy) -> None:
    for f in ("snap/db", "wal/0000000000000000-0000000000000000.wal"):
        b.place("/var/lib/etcd/member/" + f).unlink()
        shutil.copy(beside("lab-live-1.37", "/var/lib/etcd/member/" + f), b.place("/var/lib/etcd/member/" + f))
    b.remove("/var/lib/etcd/member/snap/0000000000000002-0000000000000127.snap")
    b.flag("etcd", "initial-cluster-state", "new")


@on("etcd-restored-from-different-snapshots", "ha-vip-cp1-1.37+ha-vip-cp2-1.37", "etcd-inconsistent-members")
def keys_differ(a: Copy, b: Copy) -> None:
    def other(rows: dict[bytes, bytes]) -> dict[bytes, bytes]:
        """Every fifth value of the same length, and not the same."""
        return {x: v if i % 5 else v.replace(b"kube", b"kubf") for i, (x, v) in enumerate(sorted(rows.items()))}

    db(b, key=other)


@on(
    "etcd-restored-from-different-snapshots",
    "ha-vip-cp1-1.37+ha-vip-cp2-1.37",
    "etcd-inconsistent-members",
    "etcd-cluster-id-mismatch",
)
def log_of_one(a: Copy, b: Copy) -> None:
    b.says(
        "etcd",
        line(
            "error",
            "found data inconsistency with peers",
            caller="etcdserver/corrupt.go:120",
            **{"local-member-id": "91bc3c398fb3c146", "error": "found data inconsistency"},
        ),
    )


@on("etcd-member-count-unequal-zombie", "ha-vip-cp1-1.37 ha-vip-cp2-1.37", "etcd-membership-stale")
def zombie_with_log(t: Copy) -> None:
    db(
        t,
        members=mem.members(
            Member(0x9E9E05C52164694D, "cp-9", ("https://192.0.2.119:2380",), ("https://192.0.2.119:2379",))
        ),
    )
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="error validating peerURLs {ClusterID:7e27652122e8b2ae Members:[&{ID:91bc3c398fb3c146 RaftAttributes:{PeerURLs:[https://192.0.2.112:2380] IsLearner:false}}] RemovedMemberIDs:[]}: member count is unequal",
        ),
    )


@on("etcd-member-count-unequal-zombie", "ha-vip-cp2-1.37", "etcd-membership-stale")
def log_only2(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="error validating peerURLs {ClusterID:7e27652122e8b2ae Members:[&{ID:91bc3c398fb3c146 RaftAttributes:{PeerURLs:[https://192.0.2.112:2380] IsLearner:false}}] RemovedMemberIDs:[]}: member count is unequal",
        ),
    )


@on(
    "etcd-member-count-unequal-zombie",
    "ha-vip-cp2-1.37 ha-vip-cp1-1.37 lab-one-door-cp2-1.37",
    "etcd-membership-stale",
    "etcd-membership-stale,endpoint-is-one-node",
    "etcd-quorum-impossible",
)
def unstarted(t: Copy) -> None:
    db(t, members=mem.members(Member(0x9E9E05C52164694D, "", ("https://192.0.2.119:2380",), ())))


@on("etcd-3.6-too-many-learners", "single-1.36 ha-dns-cp1-1.36 single-1.34", "etcd-too-many-learners")
def two_learners(t: Copy) -> None:
    db(
        t,
        members=mem.members(
            Member(0xA1, "cp-2", ("https://192.0.2.112:2380",), ("https://192.0.2.112:2379",), True),
            Member(0xA2, "cp-3", ("https://192.0.2.113:2380",), ("https://192.0.2.113:2379",), True),
        ),
    )


@on("etcd-3.6-too-many-learners", "ha-vip-cp2-1.37 single-1.34", "etcd-too-many-learners")
def learners_log(t: Copy) -> None:
    db(
        t,
        members=mem.members(
            Member(0xA1, "cp-2", ("https://192.0.2.112:2380",), ("https://192.0.2.112:2379",), True),
            Member(0xA2, "cp-3", ("https://192.0.2.113:2380",), ("https://192.0.2.113:2379",), True),
        ),
    )
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="membership: too many learner members in cluster",
        ),
    )


@on("etcd-3.6-too-many-learners", "single-1.36", "etcd-too-many-learners")
def learners_log_only(t: Copy) -> None:
    t.says(
        "etcd",
        line("panic", "failed to update; member unknown", error="membership: too many learner members in cluster"),
    )


@on(
    "join-advertise-address-wrong-nic-kills-quorum",
    "single-1.37 ha-dns-cp1-1.36 single-1.34",
    "etcd-quorum-impossible",
    "etcd-membership-stale",
)
def other_subnet(t: Copy) -> None:
    db(t, members=mem.members(Member(0xB1, "cp-2", ("https://10.0.2.15:2380",), ("https://10.0.2.15:2379",))))


@on(
    "join-advertise-address-wrong-nic-kills-quorum",
    "ha-vip-cp1-1.37 single-1.36",
    "etcd-quorum-impossible",
    "etcd-membership-stale",
)
def with_log2(t: Copy) -> None:
    db(t, members=mem.members(Member(0xB1, "", ("https://10.0.2.15:2380",), ())))
    t.says(
        "etcd",
        line(
            "warn",
            "prober detected unhealthy status",
            caller="rafthttp/probing_status.go:68",
            **{
                "round-tripper-name": "ROUND_TRIPPER_RAFT_MESSAGE",
                "remote-peer-id": "b1",
                "rtt": "0s",
                "error": "dial tcp 10.0.2.15:2380: i/o timeout",
            },
        ),
        line("info", "8e9e05c52164694d is starting a new election at term 4", caller="raft/raft.go:923", logger="raft"),
        line(
            "warn",
            "failed to publish local member to cluster through raft",
            caller="etcdserver/server.go:1630",
            error="etcdserver: request timed out",
        ),
    )


@on("restored-cluster-join-hangs", "ha-dns-cp1-1.36 ha-vip-cp1-1.37", "etcd-restored-default-identity")
def default_url(t: Copy) -> None:
    me = next(iter(ids(t).values()))
    db(
        t,
        members=lambda _: {
            f"{me['id']:x}".encode(): json.dumps({**me, "peerURLs": ["http://localhost:2380"]}).encode()
        },
    )


@on("restored-cluster-join-hangs trap", "single-1.37", "")
def alone(t: Copy) -> None:
    default_url(t)


@on("restored-cluster-join-hangs", "ha-vip-cp1-1.37", "etcd-restored-default-identity")
def default_name(t: Copy) -> None:
    me = next(iter(ids(t).values()))
    db(
        t,
        members=lambda _: {
            f"{me['id']:x}".encode(): json.dumps(
                {**me, "name": "default", "peerURLs": ["http://localhost:2380"]}
            ).encode()
        },
    )
