"""What the columns of many kinds share: ages, containers, selectors, counts."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import UTC, datetime
from typing import Any, NamedTuple

from snapshots.registry import selectors
from snapshots.registry.objects import at

NONE, UNKNOWN, UNSET, INVALID = "<none>", "<unknown>", "<unset>", "<invalid>"
Cell = Callable[[dict[str, Any], datetime], str]


class Column(NamedTuple):
    head: str
    cell: Cell
    wide: bool = False


def moment(text: object) -> datetime | None:
    """A time as the API writes it; None for none, and for what is no time."""
    if not isinstance(text, str) or not text:
        return None
    try:
        parsed = datetime.fromisoformat(text)
    except ValueError:
        return None
    return parsed if parsed.tzinfo else parsed.replace(tzinfo=UTC)


def since(text: object, now: datetime, otherwise: str = UNKNOWN) -> str:
    then = moment(text)
    return otherwise if then is None else elapsed((now - then).total_seconds())


def elapsed(seconds: float) -> str:
    """As HumanDuration in apimachinery's util/duration."""
    whole = int(seconds)
    if whole < 0:
        return INVALID if whole < -1 else "0s"
    if whole < 120:
        return f"{whole}s"
    minutes, hours = whole // 60, whole // 3600
    if minutes < 180:
        return _two(minutes, "m", whole % 60, "s") if minutes < 10 else f"{minutes}m"
    if hours < 48:
        return _two(hours, "h", minutes % 60, "m") if hours < 8 else f"{hours}h"
    days = hours // 24
    if days < 365 * 2:
        return _two(days, "d", hours % 24, "h") if days < 8 else f"{days}d"
    return _two(days // 365, "y", days % 365, "d") if days < 365 * 8 else f"{days // 365}y"


def _two(large: int, unit: str, small: int, smaller: str) -> str:
    return f"{large}{unit}{small}{smaller}" if small else f"{large}{unit}"


def age(body: dict[str, Any], now: datetime) -> str:
    return since(at(body, "metadata", "creationTimestamp"), now)


def name(body: dict[str, Any], _: datetime) -> str:
    return text(at(body, "metadata", "name"), "")


def created_at(body: dict[str, Any], _: datetime) -> str:
    return text(at(body, "metadata", "creationTimestamp"), UNKNOWN)


def text(value: object, empty: str = NONE) -> str:
    """A value as a cell: Go's words for booleans are the caller's choice, nothing and "" are `empty`."""
    if value is None or value == "":
        return empty
    return str(value)


def words(value: object) -> str:
    """A boolean as printers.go writes it: True, False."""
    return UNSET if value is None else str(bool(value))


def field(*path: str | int, empty: str = NONE) -> Cell:
    def cell(body: dict[str, Any], _: datetime) -> str:
        return text(at(body, *path), empty)

    return cell


def number(*path: str) -> Cell:
    return field(*path, empty="0")


def ratio(done: tuple[str, ...], wanted: tuple[str, ...]) -> Cell:
    def cell(body: dict[str, Any], _: datetime) -> str:
        return f"{at(body, *done) or 0}/{at(body, *wanted) or 0}"

    return cell


def count(*paths: tuple[str, ...]) -> Cell:
    def cell(body: dict[str, Any], _: datetime) -> str:
        return str(sum(len(at(body, *path) or ()) for path in paths))

    return cell


def dicts(value: object) -> list[dict[str, Any]]:
    return [each for each in value if isinstance(each, dict)] if isinstance(value, list) else []


def containers(*path: str) -> tuple[Column, Column]:
    """CONTAINERS and IMAGES of the pod spec at `path`."""

    def listed(what: str) -> Cell:
        def cell(body: dict[str, Any], _: datetime) -> str:
            return ",".join(str(each.get(what, "")) for each in dicts(at(body, *path, "containers")))

        return cell

    return Column("CONTAINERS", listed("name"), wide=True), Column("IMAGES", listed("image"), wide=True)


def selector(*path: str) -> Cell:
    def cell(body: dict[str, Any], _: datetime) -> str:
        return str(selectors.from_object(at(body, *path))) or NONE

    return cell


def labels(*path: str) -> Cell:
    def cell(body: dict[str, Any], _: datetime) -> str:
        return ",".join(f"{key}={value}" for key, value in sorted((at(body, *path) or {}).items())) or NONE

    return cell


def some(items: Iterable[str], most: int, separator: str = ",", total: int | None = None) -> str:
    """The first few, and how many more."""
    listed = list(items)
    more = (len(listed) if total is None else total) - most
    shown = separator.join(listed[:most])
    return f"{shown} + {more} more..." if more > 0 else shown


NAME, AGE = Column("NAME", name), Column("AGE", age)
CREATED_AT = Column("CREATED AT", created_at)
NAME_AND_AGE = (NAME, AGE)
