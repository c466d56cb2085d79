"""What etcd keeps: db, quota, log, snapshots."""

from __future__ import annotations

import os
import shutil

from tests.builders import member as mem
from tests.incidents.trials.changes import (
    ETCD,
)
from tests.incidents.trials.stored import (
    DB,
    alarm,
    db,
    ids,
    line,
    v2_rewrite,
    wal,
)
from tests.incidents.trials.trial import Copy, Trials, beside

TRIALS = Trials()
on = TRIALS.on


@on("etcd-nospace-plus-liveness-crashloop", "single-1.34 single-1.37 ha-vip-cp2-1.37", "etcd-nospace")
def alarm_and_probe(t: Copy) -> None:
    me = next(iter(ids(t).values()))["id"]
    db(t, alarm=alarm(1, me))
    t.sub(
        ETCD,
        r"livenessProbe:(?s:.*?)path: /livez",
        "livenessProbe:\n      failureThreshold: 8\n      httpGet:\n        host: 127.0.0.1\n        path: /health",
    )
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 prober.go:107] "Probe failed" probeType="Liveness" pod="kube-system/etcd-cp-1" podUID="0b68508595b81a1be441ed783418fcff" containerName="etcd" probeResult="failure" output="HTTP probe failed with statuscode: 503"',
    )


@on("etcd-nospace-plus-liveness-crashloop", "single-1.37 ha-dns-cp1-1.36 ha-vip-cp1-1.37", "etcd-nospace")
def log_only(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "warn",
            "alarm raised",
            caller="etcdserver/server.go:1860",
            alarm="NOSPACE",
            **{"raised-member-id": "8e9e05c52164694d"},
        ),
    )
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 status.go:71] "Unhandled Error" err="apiserver received an error that is not an metav1.Status: rpctypes.EtcdError{code:0x8, desc:\\"etcdserver: mvcc: database space exceeded\\"}: etcdserver: mvcc: database space exceeded"',
    )


@on("etcd-nospace-plus-liveness-crashloop", "single-1.36 single-1.37", "etcd-nospace")
def apiserver_log_and_probe(t: Copy) -> None:
    t.sub(
        ETCD,
        r"livenessProbe:(?s:.*?)path: /livez",
        "livenessProbe:\n      failureThreshold: 8\n      httpGet:\n        host: 127.0.0.1\n        path: /health",
    )
    t.flag("etcd", "quota-backend-bytes", str(t.place(DB).stat().st_size))
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 prober.go:107] "Probe failed" probeType="Liveness" pod="kube-system/etcd-cp-1" containerName="etcd" probeResult="failure" output="HTTP probe failed with statuscode: 503"',
    )
    t.says(
        "kube-apiserver",
        'E1214 22:50:00.000000       1 status.go:71] "Unhandled Error" err="apiserver received an error that is not an metav1.Status: etcdserver: mvcc: database space exceeded"',
    )


@on("etcd-nospace-plus-liveness-crashloop", "single-1.34 dualstack-1.37", "etcd-nospace")
def probe_and_size(t: Copy) -> None:
    t.sub(
        ETCD,
        r"livenessProbe:(?s:.*?)path: /livez",
        "livenessProbe:\n      failureThreshold: 8\n      httpGet:\n        host: 127.0.0.1\n        path: /health",
    )
    t.flag("etcd", "quota-backend-bytes", str(t.place(DB).stat().st_size - 4096))
    t.unit(
        "kubelet",
        'I1214 22:50:00.000000     812 prober.go:107] "Probe failed" probeType="Liveness" pod="kube-system/etcd-cp-1" containerName="etcd" probeResult="failure" output="HTTP probe failed with statuscode: 503"',
    )


@on(
    "etcd-snap-db-missing-after-power-loss",
    "ha-vip-cp2-1.37 lab-one-door-cp2-1.37",
    "etcd-snap-ahead-of-db",
    "etcd-snap-ahead-of-db,endpoint-is-one-node",
)
def index_back(t: Copy) -> None:
    db(t, meta=mem.index(3))


@on("etcd-snap-db-missing-after-power-loss", "single-1.37 single-1.34 ha-dns-cp1-1.36", "etcd-snap-ahead-of-db")
def alien_snap(t: Copy) -> None:
    source = beside("ha-vip-cp2-1.37", "/var/lib/etcd/member/snap/0000000000000002-0000000000000127.snap")
    t.write("/var/lib/etcd/member/snap/0000000000000002-0000000000100000.snap", source.read_bytes(), 0o600)
    t.says(
        "etcd",
        line(
            "panic",
            "failed to recover v3 backend from snapshot",
            caller="etcdserver/server.go:515",
            error="failed to find database snapshot file (snap: snapshot file doesn't exist)",
        ),
        "panic: failed to recover v3 backend from snapshot",
    )


@on("etcd-snap-db-missing-after-power-loss", "single-1.36 ha-vip-cp1-1.37", "etcd-snap-ahead-of-db")
def log_alone(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "panic",
            "failed to recover v3 backend from snapshot",
            caller="etcdserver/server.go:515",
            error="failed to find database snapshot file (snap: snapshot file doesn't exist)",
        ),
        "panic: failed to recover v3 backend from snapshot",
    )


@on("etcd-snap-db-missing-after-power-loss", "ha-vip-cp2-1.37", "etcd-snap-ahead-of-db")
def older_db(t: Copy) -> None:
    t.own(DB)
    t.place(DB).write_bytes(beside("ha-vip-cp2-1.37", DB).read_bytes())
    mem.rewrite(t, meta=mem.index(290))
    t.write("/var/lib/etcd/member/wal/0.tmp", b"\0" * 4096, 0o600)


@on("etcd-3.6-v2store-content", "single-1.34 single-1.36 ha-vip-cp1-1.37", "etcd-v2-content")
def v2_log(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "fatal",
            "discovery failed",
            caller="etcdmain/etcd.go:204",
            error="detected disallowed custom content in v2store for stage --v2-deprecation=write-only",
        ),
    )


@on(
    "etcd-3.6-v2store-content",
    "ha-vip-cp2-1.37 lab-one-door-cp2-1.37",
    "etcd-v2-content",
    "etcd-v2-content,endpoint-is-one-node",
)
def v2_snap(t: Copy) -> None:
    p = next(t.place("/var/lib/etcd/member/snap").glob("*.snap"))
    raw = p.read_bytes()
    v2_rewrite(t, p, raw)


@on("etcd-wal-crc-mismatch", "single-1.37 ha-vip-cp1-1.37 single-1.34", "etcd-wal-corrupt")
def flipped(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[len(recs) // 2]
    d = p.read_bytes()[a + 20 : a + 24]
    mem.overwrite(p, a + 20, bytes(x ^ 0xFF for x in d))


@on("etcd-wal-crc-mismatch", "ha-vip-cp2-1.37 single-1.36 lab-live-1.37", "etcd-wal-corrupt")
def flipped_with_log(t: Copy) -> None:
    flipped(t)
    t.says(
        "etcd",
        line(
            "fatal",
            "failed to read WAL, cannot be repaired",
            caller="etcdserver/bootstrap.go:1",
            error="walpb: crc mismatch",
        ),
    )


@on("etcd-wal-crc-mismatch", "ha-dns-cp1-1.36", "etcd-wal-corrupt")
def log_only(t: Copy) -> None:
    t.says(
        "etcd",
        line(
            "fatal", "failed to read WAL, cannot be repaired", caller="storage/util.go:1", error="walpb: crc mismatch"
        ),
    )


@on("etcd-wal-crc-mismatch", "single-1.37", "etcd-wal-corrupt")
def broken_file(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    mem.overwrite(p, recs[len(recs) // 3][0], b"\0" * 4096)
    t.says(
        "etcd",
        line(
            "fatal",
            "failed to read WAL, cannot be repaired",
            error="walpb: crc mismatch, can only repair unexpected EOF",
        ),
    )


@on("etcd-wal-entry-size-limit", "single-1.37 single-1.34 ha-vip-cp1-1.37", "etcd-wal-corrupt")
def truncated(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[-3]
    os.truncate(p, a + 8 + (b - a - 8) // 2)
    t.says(
        "etcd",
        line(
            "fatal",
            "failed to open WAL",
            error="wal: max entry size limit exceeded, recBytes: 634, fileSize(62275584) - offset(62274968) - padBytes(6) = entryLimit(610)",
        ),
    )


@on("etcd-wal-entry-size-limit", "single-1.36 ha-vip-cp2-1.37", "etcd-wal-corrupt")
def truncated_no_log(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[len(recs) // 2]
    os.truncate(p, a + 8 + (b - a - 8) // 2)


@on("healthy: torn tail of a live copy", "single-1.37 ha-vip-cp1-1.37", "")
def torn(t: Copy) -> None:
    p = wal(t)
    recs = list(mem.records(p))
    a, b = recs[-1]
    size = p.stat().st_size
    os.truncate(p, a + 8 + 3)
    os.truncate(p, size)


@on("healthy: torn tail of a live copy", "single-1.34 ha-vip-cp2-1.37", "")
def torn2(t: Copy) -> None:
    torn(t)
    for d in ("proc", "sys"):
        if t.place("/" + d).exists():
            shutil.rmtree(t.place("/" + d))
