"""Names that are almost right."""

from __future__ import annotations

from collections.abc import Iterable


def nearest(name: str, known: Iterable[str]) -> str:
    """The known name at most two edits away (an edit: insert, delete, replace, swap), letter case aside; else ""."""
    reach = 2 if len(name) > 4 else 1
    best = min(
        ((distance(name.lower(), other.lower(), reach), other) for other in known if abs(len(other) - len(name)) <= 2),
        default=(reach + 1, ""),
    )
    return best[1] if best[0] <= reach else ""


def distance(one: str, other: str, limit: int = 2) -> int:
    """Edit distance with transpositions; limit + 1 as soon as it must be more than `limit`."""
    before: list[int] = []
    row = list(range(len(other) + 1))
    for i, a in enumerate(one, 1):
        before, last, row = row, before, [i]
        for j, b in enumerate(other, 1):
            cost = min(before[j] + 1, row[j - 1] + 1, before[j - 1] + (a != b))
            if i > 1 and j > 1 and a == other[j - 2] and one[i - 2] == b:
                cost = min(cost, last[j - 2] + 1)
            row.append(cost)
        if min(row) > limit:
            return limit + 1
    return row[-1]
