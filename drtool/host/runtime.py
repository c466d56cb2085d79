"""What the container runtime knows, in the shapes that `crictl ps -a -o json` and `crictl images -o json` print.

Field numbers are those of the CRI's api.proto (runtime.v1).
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from drtool.host.cri import RuntimeSilent, ask, fields

STATES = ("CONTAINER_CREATED", "CONTAINER_RUNNING", "CONTAINER_EXITED", "CONTAINER_UNKNOWN")
EXITED = 2
SECONDS = 3.0
MOST_EXITED = 200

Message = dict[int, list[int | bytes]]


def version(path: Path, seconds: float = SECONDS) -> str:
    """`containerd 2.1.4`; raises RuntimeSilent."""
    reply = _message(ask(path, "RuntimeService/Version", b"", seconds))
    return f"{_text(reply, 2)} {_text(reply, 3).removeprefix('v')}"


def containers(path: Path, seconds: float = SECONDS) -> dict[str, Any]:
    """Every container, running or not; of those that have ended the exit code, too, unless they are removed meanwhile.

    Raises RuntimeSilent where the list itself cannot be had.
    """
    listed = _message(ask(path, "RuntimeService/ListContainers", b"", seconds))
    found = [_container(_message(item)) for item in listed.get(1, []) if isinstance(item, bytes)]
    ended = [item for item in found if item["state"] == STATES[EXITED]]
    ended.sort(key=lambda item: int(item["createdAt"]), reverse=True)
    for item in ended[:MOST_EXITED]:
        item.update(_ending(path, item["id"], seconds))
    return {"containers": found}


def images(path: Path, seconds: float = SECONDS) -> dict[str, Any]:
    listed = _message(ask(path, "ImageService/ListImages", b"", seconds))
    return {
        "images": [
            {
                "id": _text(image, 1),
                "repoTags": list(_texts(image, 2)),
                "repoDigests": list(_texts(image, 3)),
                "size": str(_number(image, 4)),
            }
            for image in (_message(item) for item in listed.get(1, []) if isinstance(item, bytes))
        ]
    }


def _container(item: Message) -> dict[str, Any]:
    """runtime.v1.Container: 1 id, 2 sandbox, 3 metadata, 4 image, 5 image_ref, 6 state, 7 created_at, 8 labels."""
    metadata = _message(_bytes(item, 3))
    state = _number(item, 6)
    return {
        "id": _text(item, 1),
        "podSandboxId": _text(item, 2),
        "metadata": {"name": _text(metadata, 1), "attempt": _number(metadata, 2)},
        "image": {"image": _text(_message(_bytes(item, 4)), 1)},
        "imageRef": _text(item, 5),
        "state": STATES[state] if state < len(STATES) else STATES[-1],
        "createdAt": str(_number(item, 7)),
        "labels": dict(_pairs(item, 8)),
        "annotations": dict(_pairs(item, 9)),
    }


def _ending(path: Path, identity: str, seconds: float) -> dict[str, Any]:
    """runtime.v1.ContainerStatus: 6 finished_at, 7 exit_code, 10 reason, 11 message."""
    request = b"\x0a" + bytes([len(identity.encode())]) + identity.encode()
    try:
        reply = _message(ask(path, "RuntimeService/ContainerStatus", request, seconds))
    except RuntimeSilent:
        return {}
    status = _message(_bytes(reply, 1))
    return {
        "finishedAt": str(_number(status, 6)),
        "exitCode": _number(status, 7),
        "reason": _text(status, 10),
        "message": _text(status, 11)[:2000],
    }


def _message(data: bytes) -> Message:
    found: Message = {}
    for number, value in fields(data):
        found.setdefault(number, []).append(value)
    return found


def _pairs(item: Message, number: int) -> Iterator[tuple[str, str]]:
    for entry in item.get(number, []):
        if isinstance(entry, bytes):
            pair = _message(entry)
            yield _text(pair, 1), _text(pair, 2)


def _bytes(item: Message, number: int) -> bytes:
    value = item.get(number, [b""])[-1]
    return value if isinstance(value, bytes) else b""


def _text(item: Message, number: int) -> str:
    return _bytes(item, number).decode("utf-8", "replace")


def _texts(item: Message, number: int) -> Iterator[str]:
    return (value.decode("utf-8", "replace") for value in item.get(number, []) if isinstance(value, bytes))


def _number(item: Message, number: int) -> int:
    value = item.get(number, [0])[-1]
    return value if isinstance(value, int) else 0
