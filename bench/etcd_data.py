"""Kubernetes-shaped objects for benchmarks: what compresses and what does not, as in a real db."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from pathlib import Path

from snapshots import scratch
from snapshots.etcd import Etcd, EtcdAccess

FLAGS = ("--quota-backend-bytes=16000000000", "--snapshot-count=1000000")
FIELDS = {
    "f:metadata": {"f:labels": {".": {}, "f:app": {}}, "f:ownerReferences": {".": {}, 'k:{"uid":"x"}': {}}},
    "f:spec": {"f:containers": {'k:{"name":"c"}': {".": {}, "f:image": {}, "f:resources": {}, "f:env": {}}}},
}


def objects(seed: int = 1) -> Iterator[tuple[bytes, bytes]]:
    """Pods with unique ids and digests, of 1 to 4 kB, and now and then a Secret that does not compress."""
    chance = random.Random(seed)  # noqa: S311 - benchmark data
    number = 0
    while True:
        number += 1
        namespace = f"team-{number % 40}"
        if number % 12 == 0:
            yield f"/registry/secrets/{namespace}/s-{number:08d}".encode(), chance.randbytes(2500)
            continue
        pod = {
            "kind": "Pod",
            "metadata": {
                "name": f"web-{number}",
                "namespace": namespace,
                "uid": f"{chance.getrandbits(128):032x}",
                "labels": {"app": f"app-{number % 97}", "pod-template-hash": f"{chance.getrandbits(36):09x}"},
                "managedFields": [{"manager": "kubelet", "fieldsV1": FIELDS}],
            },
            "spec": {
                "containers": [
                    {
                        "name": f"c{index}",
                        "image": f"registry.example/app-{number % 53}@sha256:{chance.getrandbits(256):064x}",
                        "env": [{"name": f"K{k}", "value": f"{chance.getrandbits(64):x}"} for k in range(8)],
                    }
                    for index in range(chance.randint(1, 4))
                ]
            },
            "status": {"podIP": f"10.{number % 250}.{number // 250 % 250}.7", "phase": "Running"},
        }
        yield f"/registry/pods/{namespace}/web-{number:08d}".encode(), json.dumps(pod).encode()


def fill(access: EtcdAccess, megabytes: float) -> int:
    """Puts until the db is that large (10**6 bytes); how many keys."""
    source, count = objects(), 0
    with Etcd(access) as etcd:
        while etcd.status().db_size < megabytes * 1e6:
            for _ in range(20):
                etcd.put_all([next(source) for _ in range(100)])
                count += 100
    return count


def prepared(directory: Path, megabytes: float) -> Path:
    """A data directory with that much in it, made once."""
    data = directory / f"etcd-{megabytes:g}"
    if not data.exists():
        making = directory / f"making-{megabytes:g}"
        with scratch.running(making, extra=FLAGS) as etcd:
            print(f"{fill(EtcdAccess((etcd.client_url,)), megabytes)} keys in {data}", flush=True)
        making.rename(data)
    return data
