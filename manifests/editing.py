"""YAML edited by byte range: only the planned bytes change, so comments, order and quoting survive.

The values' places come from the parser; after an edit the text is parsed again and compared with the same change made
to the plain values. Anything odd (several documents, flow lists, block scalars, aliases) is refused, never guessed at.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from drtool.core.errors import Refused
from manifests.document import Document, Path, Unparsable, parse


@dataclass(frozen=True, slots=True)
class Change:
    """`old` at byte offset `start` of the file becomes `new`."""

    start: int
    old: str
    new: str


@dataclass(frozen=True, slots=True)
class Set:
    """The scalar at `path` gets another value; its quotes stay where they can."""

    path: Path
    value: str | int | bool


@dataclass(frozen=True, slots=True)
class Remove:
    """The list item at `path` goes, with its line."""

    path: Path


@dataclass(frozen=True, slots=True)
class Insert:
    """A new text item after the list item at `path`, on a line of its own."""

    path: Path
    value: str


Edit = Set | Remove | Insert


def edit(path: str, data: bytes, edits: Sequence[Edit]) -> tuple[Change, ...]:
    """The changes that make these edits, in file order; none where the values are so already.

    Raises Refused, with the file and the value, where an edit is not possible without touching anything else.
    """
    document = _document(path, data)
    made = [change for edit in edits for change in _changes(document, data.decode(), edit)]
    changes = tuple(sorted(made, key=lambda change: change.start))
    after = _document(path, changed(data, changes)).data
    if _comparable(after) != _comparable(_expected(document.data, edits)):
        raise Refused(f"{path}: the edit would change more than was planned", "edit this file by hand")
    return changes


def changed(data: bytes, changes: Sequence[Change]) -> bytes:
    """`data` after the changes. Raises Refused where an old text is not at its place, or changes overlap."""
    pieces: list[bytes] = []
    position = 0
    for change in sorted(changes, key=lambda change: change.start):
        old = change.old.encode()
        if not position <= change.start <= len(data) or data[change.start : change.start + len(old)] != old:
            raise Refused(f"{change.old!r} is not where the plan found it", "make the plan again")
        pieces += [data[position : change.start], change.new.encode()]
        position = change.start + len(old)
    return b"".join([*pieces, data[position:]])


def reverse(changes: Sequence[Change]) -> tuple[Change, ...]:
    """The changes that lead back."""
    back: list[Change] = []
    shift = 0
    for change in sorted(changes, key=lambda change: change.start):
        back.append(Change(change.start + shift, change.new, change.old))
        shift += len(change.new.encode()) - len(change.old.encode())
    return tuple(back)


def scalars(data: object, here: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every plain value below, with its path."""
    if isinstance(data, dict):
        for key, value in data.items():
            yield from scalars(value, (*here, key))
    elif isinstance(data, list):
        for position, value in enumerate(data):
            yield from scalars(value, (*here, position))
    else:
        yield here, data


def rewritten(path: str, data: bytes, rewrite: Callable[[Path, str], str]) -> tuple[Edit, ...]:
    """The edits that give every text value what `rewrite` makes of it."""
    texts = ((place, value) for place, value in scalars(_document(path, data).data) if isinstance(value, str))
    return tuple(Set(place, new) for place, value in texts if (new := rewrite(place, value)) != value)


def _document(path: str, data: bytes) -> Document:
    try:
        documents = parse(path, data)
    except Unparsable as broken:
        raise Refused(f"{broken}", "this file must be put right by hand first") from broken
    if len(documents) != 1 or data.startswith(b"\xef\xbb\xbf"):
        raise Refused(f"{path} holds several documents or a byte order mark", "edit this file by hand")
    if documents[0].duplicates:
        key, line = documents[0].duplicates[0]
        raise Refused(f"{path}:{line}: {key} is given twice", "take one of the two out by hand first")
    return documents[0]


def _changes(document: Document, text: str, edit: Edit) -> Iterator[Change]:
    start, end = _span(document, edit.path)
    written = text[start:end]
    if isinstance(edit, Set):
        if document.get(*edit.path) != edit.value:
            yield _change(text, start, end, _render(document, written, edit))
        return
    first, last = _own_line(document, text, start, end)
    if isinstance(edit, Remove):
        yield _change(text, first, last, "")
        return
    line = text[first:last]
    ending = "\r\n" if line.endswith("\r\n") else "\n"
    indent = line[: len(line) - len(line.lstrip(" "))]
    new = f"{indent}- {_plain_or_quoted(edit.value)}{ending}"
    yield _change(text, last, last, new if line.endswith("\n") else ending + new)


def _span(document: Document, path: Path) -> tuple[int, int]:
    try:
        return document.spans[path]
    except KeyError:
        place = ".".join(str(part) for part in path)
        raise Refused(f"{document.path}: no plain value at {place}", "edit this file by hand") from None


def _change(text: str, start: int, end: int, new: str) -> Change:
    return Change(len(text[:start].encode()), text[start:end], new)


def _own_line(document: Document, text: str, start: int, end: int) -> tuple[int, int]:
    """The range of the one line that holds nothing but this list item (and perhaps a comment)."""
    first = text.rfind("\n", 0, start) + 1
    last = text.find("\n", start) + 1 or len(text)
    rest = text[end:last].strip()
    if text[first:start].strip() != "-" or end > last or (rest and not rest.startswith("#")):
        number = text.count("\n", 0, start) + 1
        raise Refused(f"{document.path}:{number}: the item has no line of its own", "edit this line by hand")
    return first, last


def _render(document: Document, written: str, edit: Set) -> str:
    if isinstance(edit.value, bool):
        return "true" if edit.value else "false"
    if isinstance(edit.value, int):
        return str(edit.value)
    if written[:1] == "'" and edit.value.isprintable():
        return "'" + edit.value.replace("'", "''") + "'"
    if written[:1] in ('"', "'"):
        return _quoted(edit.value)
    if written[:1] in ("|", ">") or "\n" in written.strip():
        place = ".".join(str(part) for part in edit.path)
        raise Refused(f"{document.path}: {place} is written over several lines", "edit this value by hand")
    return _plain_or_quoted(edit.value)


def _plain_or_quoted(value: str) -> str:
    """Plain where YAML reads the same text back, in a list and in a mapping; else in double quotes."""
    try:
        probes = [parse("", text.encode()) for text in (f"- {value} # c\n", f"k: {value}\n")]
        if [probe[0].data for probe in probes] == [[value], {"k": value}]:
            return value
    except (Unparsable, IndexError):
        pass
    return _quoted(value)


def _quoted(value: str) -> str:
    """In double quotes, where YAML takes JSON's escapes; never a surrogate pair, which it does not join."""
    quoted = json.dumps(value, ensure_ascii=False)
    return "".join(char if char.isprintable() else f"\\U{ord(char):08x}" for char in quoted)


def _expected(data: object, edits: Sequence[Edit]) -> object:
    """The same edits on plain values; list positions are those of the unedited file."""
    result = copy.deepcopy(data)
    for edit in sorted(edits, key=lambda edit: _order(edit.path), reverse=True):
        place: Any = result
        for part in edit.path[:-1]:
            place = place[part]
        last: Any = edit.path[-1]
        match edit:
            case Set():
                place[last] = edit.value
            case Remove():
                del place[last]
            case Insert():
                place.insert(last + 1, edit.value)
    return result


def _order(path: Path) -> tuple[tuple[int, str], ...]:
    return tuple((part, "") if isinstance(part, int) else (-1, str(part)) for part in path)


def _comparable(data: object) -> str:
    """True and 1 differ here, as they do to the kubelet."""
    return repr(data)
