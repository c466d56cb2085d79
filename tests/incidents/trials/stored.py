"""Changes to what etcd keeps on its disk."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.builders import member as mem
from tests.incidents.trials.trial import TIME, Copy

DB = mem.DB
Pairs = mem.Pairs


def line(level: str, msg: str, **kw: object) -> str:
    """A line of etcd's own log."""
    return json.dumps(
        {
            "level": level,
            "ts": TIME + ".000000Z",
            "caller": kw.pop("caller", "etcdserver/server.go:1"),
            "msg": msg,
            **kw,
        },
        separators=(",", ":"),
    )


def db(t: Copy, **kw: Callable[[Pairs], Pairs]) -> None:
    """Rewrites small buckets of the tree's db."""
    t.own(DB)
    mem.rewrite(t, **kw)


def ids(t: Copy) -> dict[bytes, dict[str, Any]]:
    """The members bucket."""
    from snapshots import mvcc

    with mvcc.opened(t.place(DB)) as k:
        return {key: json.loads(v) for key, v in k.small(b"members").items()}


def alarm(kind: int, member: int) -> Callable[[Pairs], Pairs]:
    """The alarm bucket with one alarm: etcdserverpb.AlarmMember {1 memberID, 2 alarm}."""
    return lambda _: {(b"\x08" + varint(member) + b"\x10" + bytes([kind])): b""}


def varint(n: int) -> bytes:
    out = b""
    while n > 127:
        out += bytes([n & 127 | 128])
        n >>= 7
    return out + bytes([n])


def add_status(cm: dict[str, Any]) -> None:
    cm["data"]["ClusterStatus"] = (
        "apiEndpoints:\n  cp-1:\n    advertiseAddress: 192.0.2.111\n    bindPort: 6443\n  cp-9:\n    advertiseAddress: 192.0.2.119\n    bindPort: 6443\napiVersion: kubeadm.k8s.io/v1beta2\nkind: ClusterStatus\n"
    )
    cm["data"]["ClusterConfiguration"] = re.sub(
        r"kubernetesVersion: \S+", "kubernetesVersion: v1.21.14", cm["data"]["ClusterConfiguration"]
    )


def objects(t: Copy, key: str, change: Callable[[dict[str, Any]], None]) -> None:
    """Rewrites every revision of a key with JSON of the changed object."""
    from snapshots import mvcc
    from snapshots.mvcc import encode_key_value

    t.own(DB)

    def rows(old: Pairs) -> Pairs:
        out = {}
        for rev, raw in old.items():
            kv = mvcc.decode_key_value(raw) if hasattr(mvcc, "decode_key_value") else mvcc.parse_key_value(raw)
            if kv.key == key.encode() and kv.value:
                obj = decoded(kv.value)
                change(obj)
                raw = encode_key_value(
                    kv._replace(value=json.dumps(obj).encode())
                    if hasattr(kv, "_replace")
                    else __import__("dataclasses").replace(kv, value=json.dumps(obj).encode())
                )
                rows.hit = True
            out[rev] = raw
        return out

    rows.hit = False
    mem.rewrite(t, key=rows)
    assert rows.hit, key


def decoded(value: bytes) -> dict[str, Any]:
    from snapshots.registry import envelope

    return envelope.decode(value)


def crc32c(data: bytes) -> int:
    table = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ 0x82F63B78 if c & 1 else c >> 1
        table.append(c)
    c = 0xFFFFFFFF
    for b in data:
        c = table[(c ^ b) & 255] ^ (c >> 8)
    return c ^ 0xFFFFFFFF


def v2_rewrite(t: Copy, p: Path, raw: bytes) -> None:
    """A .snap file whose v2 store has the key /1/foo too."""

    # snappb.Snapshot{crc=1, data=2}; raftpb.Snapshot{data=1, metadata=2}
    def fields(b: bytes) -> list[tuple[int, Any]]:
        i = 0
        out = []
        while i < len(b):
            k = b[i]
            i += 1
            n = 0
            s = 0
            while True:
                x = b[i]
                i += 1
                n |= (x & 127) << s
                s += 7
                if x < 128:
                    break
            if k & 7 == 2:
                out.append((k, b[i : i + n]))
                i += n
            else:
                out.append((k, n))
        return out

    def enc(fs: list[tuple[int, Any]]) -> bytes:
        return b"".join(bytes([k]) + (varint(v) if isinstance(v, int) else varint(len(v)) + v) for k, v in fs)

    outer = fields(raw)
    inner = fields(dict(outer)[0x12])
    store = json.loads(dict(inner)[0x0A])
    store["Root"]["Children"]["1"] = {
        "Path": "/1",
        "CreatedIndex": 9,
        "ModifiedIndex": 9,
        "ExpireTime": "0001-01-01T00:00:00Z",
        "Value": "",
        "Children": {
            "foo": {
                "Path": "/1/foo",
                "CreatedIndex": 9,
                "ModifiedIndex": 9,
                "ExpireTime": "0001-01-01T00:00:00Z",
                "Value": "bar",
                "Children": None,
            }
        },
    }
    inner = [(k, json.dumps(store).encode() if k == 0x0A else v) for k, v in inner]
    data = enc(inner)
    t.write(str(p.relative_to(t.root)), enc([(0x08, crc32c(data)), (0x12, data)]), 0o600)


def wal(t: Copy) -> Path:
    """The newest segment, to be changed in place."""
    return t.own(mem.WAL + "/" + max(p.name for p in t.place(mem.WAL).glob("*.wal")))


def node_cidr(cidr: str) -> Callable[[dict[str, Any]], None]:
    def change(o: dict[str, Any]) -> None:
        o["spec"]["podCIDR"] = cidr
        o["spec"]["podCIDRs"] = [cidr]

    return change


def a_node(t: Copy) -> bytes:
    from snapshots import mvcc

    with mvcc.opened(t.place(DB)) as k:
        raws = k.small(b"key")
    keys = [mvcc.decode_key_value(v).key for v in raws.values()]
    return next(k for k in keys if k.startswith(b"/registry/minions/"))


def add_node(t: Copy, name: str, cidr: str) -> None:
    """A further Node, made of the first."""
    from snapshots import mvcc
    from snapshots.mvcc import Revision, decode_revision, encode_key_value, encode_revision
    from snapshots.registry import envelope

    t.own(DB)

    def rows(old: Pairs) -> Pairs:
        revs = sorted(old)
        kv = None
        for r in revs:
            x = mvcc.decode_key_value(old[r])
            if x.key.startswith(b"/registry/minions/") and x.value:
                kv = x
        body = envelope.decode(kv.value)
        body["metadata"]["name"] = name
        body["metadata"]["uid"] = "11111111-2222-3333-4444-" + f"{abs(hash(name)) % 10**12:012d}"
        body["spec"]["podCIDR"] = cidr
        body["spec"]["podCIDRs"] = [cidr]
        main = decode_revision(revs[-1]).main + 1
        return old | {
            encode_revision(Revision(main)): encode_key_value(
                kv._replace(
                    key=f"/registry/minions/{name}".encode(),
                    create_revision=main,
                    mod_revision=main,
                    version=1,
                    value=json.dumps(body).encode(),
                )
            )
        }

    mem.rewrite(t, key=rows)


def cm(key: str, old: str, new: str) -> Callable[[dict[str, Any]], None]:
    def change(o: dict[str, Any]) -> None:
        o["data"][key] = re.sub(old, new, o["data"][key])
        assert new in o["data"][key], o["data"][key]

    return change
