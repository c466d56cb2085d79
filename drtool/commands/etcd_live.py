"""What a running etcd says of itself and its members, over its JSON gateway: no gRPC library is loaded for a look."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import urlsplit

from drtool.host.probes import Answer, Target, probe, probe_all

HASHED_UP_TO = 1 << 30  # bytes of db: hashing reads every key, which a busy member must not be asked for lightly


class NoAnswer(Exception):
    """No endpoint answered; the text is the last one's complaint."""


def ask_etcd(endpoints: Sequence[Target]) -> dict[str, Any]:
    """Members, alarms, and each member's status and hash at one revision, with the field names of etcd's JSON.

    {"endpoint": URL, "members": [...], "alarms": [...],
     "status": [{"endpoint": URL, ..., "seconds": 0.003, "error": ""}],
     "hashes": [{"endpoint": URL, "revision": 1, "hash": 1, "error": ""}]}

    Raises NoAnswer.
    """
    first, listed = _first(endpoints)
    members = [member for member in listed.get("members", []) if isinstance(member, dict)]
    alarms = _json(probe(_asking(first, "/v3/maintenance/alarm", {"action": "GET"})))
    others = [_at(first, url) for member in members for url in list(member.get("clientURLs") or [])[:1]]
    each = [target for target in others if target is not None] or [first]
    status = _each(each, "/v3/maintenance/status", {})
    return {
        "endpoint": _endpoint(first),
        "members": members,
        "alarms": alarms.get("alarms", []) if alarms else [],
        "status": status,
        "hashes": _hashes(each, status),
    }


def _first(endpoints: Sequence[Target]) -> tuple[Target, dict[str, Any]]:
    complaint = "it listens on no address that can be asked"
    for endpoint in endpoints:
        answer = probe(_asking(endpoint, "/v3/cluster/member/list", {}))
        listed = _json(answer)
        if listed is not None:
            return endpoint, listed
        complaint = f"{_endpoint(endpoint)}: {answer.error or f'status {answer.status}'}"
    raise NoAnswer(f"etcd does not answer: {complaint}")


def _hashes(each: Sequence[Target], status: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Hashes are compared at the lowest revision that all members have."""
    revisions = [_whole(_mapping(item, "header").get("revision")) for item in status]
    sizes = [_whole(item.get("dbSize")) for item in status]
    if len(each) < 2 or not all(revisions) or max(sizes) > HASHED_UP_TO:
        return []
    revision = min(revisions)
    hashes = _each(each, "/v3/maintenance/hashkv", {"revision": str(revision)})
    return [{**item, "revision": revision} for item in hashes]


def _each(targets: Sequence[Target], path: str, body: dict[str, Any]) -> list[dict[str, Any]]:
    answers = probe_all([_asking(target, path, body) for target in targets], overall=4.0)
    return [
        {
            "endpoint": _endpoint(answer.target),
            **(_json(answer) or {}),
            "seconds": round(answer.seconds, 4),
            "error": _complaint(answer),
        }
        for answer in answers
    ]


def _complaint(answer: Answer) -> str:
    if answer.error or answer.status is None:
        return answer.error or "no answer"
    return "" if answer.status == 200 else f"status {answer.status}"


def _asking(target: Target, path: str, body: dict[str, Any]) -> Target:
    return replace(target, path=path, body=json.dumps(body).encode(), guest=False)


def _at(first: Target, url: object) -> Target | None:
    try:
        parts = urlsplit(str(url))
        host, port = parts.hostname, parts.port
    except ValueError:
        return None
    return replace(first, host=host, port=port, tls=parts.scheme == "https") if host and port else None


def _endpoint(target: Target) -> str:
    return replace(target, path="/").url.rstrip("/")


def _json(answer: Answer) -> dict[str, Any] | None:
    if answer.status != 200:
        return None
    try:
        found = json.loads(answer.body)
    except (ValueError, RecursionError):
        return None
    return found if isinstance(found, dict) else None


def _mapping(item: dict[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def _whole(value: object) -> int:
    """protojson writes 64-bit numbers as text."""
    return int(str(value)) if str(value).isdecimal() else 0
