"""Secrets as they may be shown: the names of their keys and how many bytes each holds."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from snapshots.registry.comparing import LAST_APPLIED

HIDDEN = "<hidden>"


def masked(body: dict[str, Any]) -> dict[str, Any]:
    """`body` itself for anything but a Secret. The copy of the values that kubectl apply keeps is hidden too."""
    if body.get("kind") != "Secret" or body.get("apiVersion") != "v1":
        return body
    out = dict(body)
    for name in ("data", "stringData"):
        if isinstance(body.get(name), dict):
            out[name] = {key: _hidden(value) for key, value in body[name].items()}
    metadata = body.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, dict) else None
    if isinstance(metadata, dict) and isinstance(annotations, dict) and LAST_APPLIED in annotations:
        out["metadata"] = metadata | {"annotations": annotations | {LAST_APPLIED: HIDDEN}}
    return out


def _hidden(value: object) -> str:
    try:
        return f"<hidden: {len(base64.b64decode(str(value), validate=True))} bytes>"
    except (binascii.Error, ValueError):
        return HIDDEN
