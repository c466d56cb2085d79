"""A real API server's snapshot against what kubectl said, object by object."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from snapshots import mvcc
from snapshots.registry import encryption, envelope, keys, served
from tests.registry import real

MOVED_ON = {("Lease", "kube-system", "apiserver-nf5hmobm7fnbbghrppqevdm55y")}
"""Renewed between kubectl's answer and the snapshot."""
NOT_STORED = {"ComponentStatus"}


def ident(body: dict[str, Any]) -> tuple[str, str, str]:
    return body["kind"], body["metadata"].get("namespace", ""), body["metadata"]["name"]


@real.needed
def test_every_object_equals_what_kubectl_said(tmp_path: Path) -> None:
    secrets = encryption.parse(real.configuration(), "encryption.yaml")
    told = {ident(body): body for body in real.truth() if not body["apiVersion"].startswith("events.k8s.io/")}
    seen = set()
    with mvcc.opened(real.database(tmp_path)) as keyspace:
        for kv in keyspace.index().prefix(b"/registry/"):
            found = keys.place(kv.key)
            if found is None:
                continue
            body = served.served(envelope.decode(encryption.opened(kv.value, kv.key, secrets)))
            body["metadata"]["resourceVersion"] = str(kv.mod_revision)
            assert (found.namespace, found.name) == ident(body)[1:]
            seen.add(ident(body))
            if ident(body) not in MOVED_ON:
                assert body == told[ident(body)]
    assert {ident for ident in told if ident[0] not in NOT_STORED} == seen
