"""What only programs can tell of a node: units, containers, images, file systems, answers to probes, listeners.

On a live node it is asked for and laid into the capture as files below /drtool; in a bundle those files lie there. So a
check reads a live node and a bundle alike, and a copied tree has none of it. Shapes are those that `systemctl`,
`crictl ps -a -o json` and `crictl images -o json` give, with exit codes added. What makes no sense is left out.

Structs, not dataclasses: these dozen classes take 10 ms less to make, and every check of a tree pays for them.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

from msgspec import Struct

from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence
from drtool.host.root import Entry

UNITS, CONTAINERS, IMAGES = "/drtool/units.json", "/drtool/containers.json", "/drtool/images.json"
FILESYSTEMS, PROBES, LISTENERS = "/drtool/filesystems.json", "/drtool/probes.json", "/drtool/listeners.json"
ETCD = "/drtool/etcd-live.json"
STATES = {"CONTAINER_CREATED": "created", "CONTAINER_RUNNING": "running", "CONTAINER_EXITED": "exited"}


class UnitState(Struct, frozen=True):
    """A unit as systemd sees it: `active` and `sub` are ActiveState and SubState ("active", "running")."""

    name: str
    active: str
    sub: str
    evidence: Evidence


class ContainerState(Struct, frozen=True):
    """A container as the runtime sees it. `state` is created, running, exited or unknown.

    `exit_code` is None while it runs, and where only `crictl ps` was asked; `attempt` counts restarts from 0.
    """

    id: str
    name: str
    pod: str
    namespace: str
    state: str
    attempt: int
    image: str
    image_id: str
    created: datetime | None
    finished: datetime | None
    exit_code: int | None
    reason: str
    message: str
    evidence: Evidence


class Image(Struct, frozen=True):
    """An image that the runtime holds."""

    id: str
    tags: tuple[str, ...]
    digests: tuple[str, ...]


class Filesystem(Struct, frozen=True):
    """Sizes in bytes; `inodes` is 0 where the file system counts none (btrfs)."""

    mount: str
    size: int
    free: int
    inodes: int
    inodes_free: int
    evidence: Evidence


class Served(Struct, frozen=True):
    """The certificate that a server sent in a TLS handshake. `fingerprint` is SHA-256 in hex."""

    fingerprint: str
    subject: str
    issuer: str
    not_before: datetime | None
    not_after: datetime | None
    names: tuple[str, ...]


class ProbeAnswer(Struct, frozen=True):
    """What one probe came to.

    `component` is the program probed: kube-apiserver, kube-controller-manager, kube-scheduler, etcd, kubelet,
    container-runtime. `kind` is tcp, tls, http or cri. `ok` says whether it answered as a healthy one does; `status` is
    the HTTP status (None without an answer), `failing` the parts that a verbose answer names, `error` why there is no
    answer ("timed out", "Connection refused").
    """

    component: str
    kind: str
    url: str
    ok: bool
    status: int | None
    failing: tuple[str, ...]
    error: str
    served: Served | None
    evidence: Evidence


class Listener(Struct, frozen=True):
    """A listening TCP socket. `command` is the program's name, "" where it could not be told (a copied tree)."""

    address: str
    port: int
    pid: int | None
    command: str
    evidence: Evidence


def told(entry: Entry, missing: str = "") -> Any:
    """The JSON of one file below /drtool.

    NotApplicable where nobody asked (a copied tree, --no-probe), EvidenceMissing where it was asked in vain.
    """
    if entry.data is None:
        if missing:
            raise EvidenceMissing(missing)
        raise NotApplicable("only a live node that is probed, or a bundle, tells")
    found = read_json(entry)
    if found is None:
        raise EvidenceMissing(f"{entry.path} is no JSON")
    return found


def read_json(entry: Entry) -> Any:
    """None for what is absent or no JSON."""
    try:
        return json.loads(entry.data or b"null")
    except (ValueError, RecursionError):
        return None


def read_units(data: Any) -> tuple[UnitState, ...]:
    return tuple(
        UnitState(
            text(item, "name"),
            text(item, "active"),
            text(item, "sub"),
            Evidence(
                UNITS, None, f"{text(item, 'name')} is {text(item, 'active')} ({text(item, 'sub') or 'no detail'})"
            ),
        )
        for item in _records(data)
    )


def read_containers(data: Any) -> tuple[ContainerState, ...]:
    found = []
    for item in _records(data, "containers"):
        labels = _mapping(item, "labels")
        name = text(labels, "io.kubernetes.container.name") or text(_mapping(item, "metadata"), "name")
        state = STATES.get(text(item, "state"), "unknown")
        code = _whole(item, "exitCode") if state == "exited" else None
        said = f"{name} {state}" + (f" with status {code}" if code is not None else "")
        found.append(
            ContainerState(
                id=text(item, "id"),
                name=name,
                pod=text(labels, "io.kubernetes.pod.name"),
                namespace=text(labels, "io.kubernetes.pod.namespace"),
                state=state,
                attempt=_whole(_mapping(item, "metadata"), "attempt") or 0,
                image=text(_mapping(item, "image"), "image"),
                image_id=text(item, "imageRef"),
                created=_nanoseconds(item.get("createdAt")),
                finished=_nanoseconds(item.get("finishedAt")),
                exit_code=code,
                reason=text(item, "reason"),
                message=text(item, "message")[:300],
                evidence=Evidence(CONTAINERS, None, said),
            )
        )
    return tuple(found)


def read_images(data: Any) -> tuple[Image, ...]:
    return tuple(
        Image(text(item, "id"), _texts(item, "repoTags"), _texts(item, "repoDigests"))
        for item in _records(data, "images")
    )


def read_filesystems(data: Any) -> tuple[Filesystem, ...]:
    found = []
    for item in _records(data):
        size, free, inodes, inodes_free = (_whole(item, key) for key in ("size", "free", "inodes", "inodesFree"))
        if size is None or free is None:
            continue
        said = f"{text(item, 'mount')}: {free >> 20} of {size >> 20} MiB free"
        if inodes:
            said += f", {inodes_free or 0} of {inodes} inodes free"
        evidence = Evidence(FILESYSTEMS, None, said)
        found.append(Filesystem(text(item, "mount"), size, free, inodes or 0, inodes_free or 0, evidence))
    return tuple(found)


def read_probes(data: Any) -> tuple[ProbeAnswer, ...]:
    found = []
    for item in _records(data):
        status, failing, error = _whole(item, "status"), _texts(item, "failing"), text(item, "error")
        said = error or (f"status {status}" if status is not None else "answered")
        if failing:
            said += f", failing: {', '.join(failing)}"
        found.append(
            ProbeAnswer(
                component=text(item, "component"),
                kind=text(item, "kind"),
                url=text(item, "url"),
                ok=item.get("ok") is True,
                status=status,
                failing=failing,
                error=error,
                served=_served(_mapping(item, "certificate")),
                evidence=Evidence(PROBES, None, f"{text(item, 'url')}: {said}"),
            )
        )
    return tuple(found)


def read_listeners(data: Any) -> tuple[Listener, ...]:
    found = []
    for item in _records(data):
        port, pid = _whole(item, "port"), _whole(item, "pid")
        if port is not None:
            said = f"{text(item, 'address')} port {port}: {text(item, 'command') or 'unknown'}"
            said += f" (pid {pid})" if pid is not None else ""
            evidence = Evidence(LISTENERS, None, said)
            found.append(Listener(text(item, "address"), port, pid, text(item, "command"), evidence))
    return tuple(found)


class EtcdAnswer(Struct, frozen=True):
    """What one endpoint answered, and in how many `seconds` (None where that was not kept).

    `hash` is hashkv's at `revision`; `error` is "" where it answered.
    """

    endpoint: str
    member: int
    version: str
    db_size: int
    in_use: int
    quota: int
    leader: int
    raft_index: int
    revision: int
    hash: int | None
    errors: tuple[str, ...]
    error: str
    evidence: Evidence
    seconds: float | None = None


class EtcdMember(Struct, frozen=True):
    """`name` is "" for a member that was added and never started."""

    id: int
    name: str
    peer_urls: tuple[str, ...]
    client_urls: tuple[str, ...]
    learner: bool
    evidence: Evidence


class EtcdState(Struct, frozen=True):
    """What a running etcd said of its cluster. `alarms` are (member id, "NOSPACE" or "CORRUPT").

    `hashes` are all of one revision; there are none for a single member and for a large db.
    """

    endpoint: str
    members: tuple[EtcdMember, ...]
    alarms: tuple[tuple[int, str], ...]
    status: tuple[EtcdAnswer, ...]
    hashes: tuple[EtcdAnswer, ...]


def read_etcd(data: Any) -> EtcdState:
    state = data if isinstance(data, dict) else {}
    alarms = ((_number(item, "memberID"), text(item, "alarm")) for item in _records(state, "alarms"))
    return EtcdState(
        text(state, "endpoint"),
        tuple(_member(item) for item in _records(state, "members")),
        tuple((member, alarm) for member, alarm in alarms if alarm),
        tuple(_etcd_answer(item) for item in _records(state, "status")),
        tuple(_etcd_answer(item) for item in _records(state, "hashes")),
    )


def _member(item: dict[str, Any]) -> EtcdMember:
    name, urls = text(item, "name"), _texts(item, "peerURLs")
    said = f"member {_number(item, 'ID'):x} {name or '(never started)'} {' '.join(urls)}"
    said += " learner" if item.get("isLearner") is True else ""
    return EtcdMember(
        _number(item, "ID"),
        name,
        urls,
        _texts(item, "clientURLs"),
        item.get("isLearner") is True,
        Evidence(ETCD, None, said),
    )


def _etcd_answer(item: dict[str, Any]) -> EtcdAnswer:
    header = _mapping(item, "header")
    hashed = item.get("hash")
    revision = _number(item, "revision") or _number(header, "revision")
    said = text(item, "error") or f"revision {revision}" + (f", hash {hashed}" if hashed is not None else "")
    return EtcdAnswer(
        endpoint=text(item, "endpoint"),
        member=_number(header, "member_id"),
        version=text(item, "version"),
        db_size=_number(item, "dbSize"),
        in_use=_number(item, "dbSizeInUse"),
        quota=_number(item, "dbSizeQuota"),
        leader=_number(item, "leader"),
        raft_index=_number(item, "raftIndex"),
        revision=revision,
        hash=_number(item, "hash") if hashed is not None else None,
        errors=_texts(item, "errors"),
        error=text(item, "error"),
        evidence=Evidence(ETCD, None, f"{text(item, 'endpoint')}: {said}"),
        seconds=seconds if isinstance(seconds := item.get("seconds"), float) else None,
    )


def _number(item: dict[str, Any], key: str) -> int:
    """protojson writes 64-bit numbers as text; 0 for what is absent."""
    value = item.get(key)
    digits = str(value)
    return int(digits) if digits.isascii() and digits.isdecimal() and len(digits) < 21 else 0


def _served(item: dict[str, Any]) -> Served | None:
    if not text(item, "fingerprint"):
        return None
    return Served(
        text(item, "fingerprint"),
        text(item, "subject"),
        text(item, "issuer"),
        moment(item.get("notBefore")),
        moment(item.get("notAfter")),
        _texts(item, "names"),
    )


def moment(value: object) -> datetime | None:
    """A time as ISO 8601, in UTC; None for anything else."""
    try:
        return datetime.fromisoformat(str(value)).astimezone(UTC)
    except (ValueError, OverflowError):
        return None


def _records(data: Any, key: str = "") -> Iterator[dict[str, Any]]:
    items = data.get(key) if key and isinstance(data, dict) else data
    return (item for item in (items if isinstance(items, list) else ()) if isinstance(item, dict))


def _mapping(item: dict[str, Any], key: str) -> dict[str, Any]:
    value = item.get(key)
    return value if isinstance(value, dict) else {}


def text(item: dict[str, Any], key: str) -> str:
    value = item.get(key)
    return value if isinstance(value, str) else ""


def _texts(item: dict[str, Any], key: str) -> tuple[str, ...]:
    value = item.get(key)
    return tuple(part for part in value if isinstance(part, str)) if isinstance(value, list) else ()


def _whole(item: dict[str, Any], key: str) -> int | None:
    value = item.get(key)
    return value if isinstance(value, int) and not isinstance(value, bool) else None


def _nanoseconds(value: object) -> datetime | None:
    """CRI times are nanoseconds since the epoch, which crictl prints as text; 0 is never."""
    try:
        return datetime.fromtimestamp(int(str(value)) / 1e9, UTC) if int(str(value)) > 0 else None
    except (ValueError, OverflowError, OSError):
        return None
