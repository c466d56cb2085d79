"""Kubernetes resource quantities: `250m`, `1.5`, `512Mi`, `1e3`."""

from __future__ import annotations

import re

_QUANTITY = re.compile(r"([+-]?[\d.]+(?:[eE][+-]?\d+)?)(m|u|n|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei)?")
_BINARY = {unit: 1024.0**power for power, unit in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), 1)}
_DECIMAL = {"n": 1e-9, "u": 1e-6, "m": 1e-3, "k": 1e3, "M": 1e6, "G": 1e9, "T": 1e12, "P": 1e15, "E": 1e18}
_UNITS: dict[str, float] = {**_BINARY, **_DECIMAL, "": 1.0}


def quantity(value: object) -> float | None:
    """In CPUs, bytes or a bare number; None for what is no quantity (a percentage, say)."""
    match = _QUANTITY.fullmatch(str(value).strip()) if value is not None else None
    if match is None:
        return None
    try:
        return float(match[1]) * _UNITS[match[2] or ""]
    except ValueError:
        return None
