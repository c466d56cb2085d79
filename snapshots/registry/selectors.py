"""Label selectors: kubectl's `-l` words, and the matchLabels and matchExpressions of objects."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from drtool.core.errors import UsageError

IN, NOT_IN, EXISTS, ABSENT = "In", "NotIn", "Exists", "DoesNotExist"
LABEL = r"[A-Za-z0-9][\w./-]*"
REQUIREMENT = re.compile(
    rf"(?P<absent>!\s*)?(?P<key>{LABEL})\s*(?:(?P<set>in|notin)\s*\((?P<values>[^()]*)\)|(?P<op>==|!=|=)\s*(?P<value>[\w.-]*))?\s*"
)


class Requirement(NamedTuple):
    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, Any]) -> bool:
        value = labels.get(self.key)
        if self.operator == EXISTS:
            return self.key in labels
        if self.operator == ABSENT:
            return self.key not in labels
        if self.operator == NOT_IN:
            return self.key not in labels or value not in self.values
        return self.operator == IN and self.key in labels and value in self.values

    def __str__(self) -> str:
        if self.operator in (EXISTS, ABSENT):
            return self.key if self.operator == EXISTS else f"!{self.key}"
        word = "in" if self.operator == IN else "notin"
        if len(self.values) == 1 and self.operator == IN:
            return f"{self.key}={self.values[0]}"
        return f"{self.key} {word} ({','.join(sorted(self.values))})"


class Selector(NamedTuple):
    requirements: tuple[Requirement, ...] = ()

    def matches(self, labels: Mapping[str, Any] | None) -> bool:
        return all(requirement.holds(labels or {}) for requirement in self.requirements)

    def __str__(self) -> str:
        return ",".join(map(str, self.requirements))


EVERYTHING = Selector()


def parse(text: str) -> Selector:
    """`app=front,tier!=db,env in (a,b),!legacy`; UsageError for anything else."""
    requirements, at = [], 0
    while at < len(text):
        found = REQUIREMENT.match(text, at)
        if not found or (found.end() < len(text) and text[found.end()] != ","):
            raise UsageError(f"no label selector: {text}", "write app=front,tier!=db,env in (a,b),!legacy")
        requirements.append(_requirement(found))
        at = found.end() + 1
        while at < len(text) and text[at] == " ":
            at += 1
    return Selector(tuple(requirements))


def _requirement(found: re.Match[str]) -> Requirement:
    key = found["key"]
    if found["absent"]:
        return Requirement(key, ABSENT)
    if found["set"]:
        values = tuple(value.strip() for value in found["values"].split(","))
        return Requirement(key, IN if found["set"] == "in" else NOT_IN, values)
    if found["op"]:
        return Requirement(key, NOT_IN if found["op"] == "!=" else IN, (found["value"],))
    return Requirement(key, EXISTS)


def from_labels(labels: Mapping[str, Any] | None) -> Selector:
    """A Service's or a ReplicationController's plain map."""
    return Selector(tuple(Requirement(key, IN, (str(value),)) for key, value in sorted((labels or {}).items())))


def from_object(selector: Mapping[str, Any] | None) -> Selector:
    """A LabelSelector: matchLabels and matchExpressions."""
    expressions = (selector or {}).get("matchExpressions") or []
    return Selector(
        (
            *from_labels((selector or {}).get("matchLabels")).requirements,
            *(
                Requirement(str(each.get("key")), str(each.get("operator")), tuple(each.get("values") or ()))
                for each in expressions
            ),
        )
    )
