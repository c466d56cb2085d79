"""What holds for every check: it is explained, weighed, annotated, tested, and names only checks that there are."""

from __future__ import annotations

import importlib
import inspect
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from types import ModuleType

import pytest

from drtool.commands.check import PACKAGES, all_checks
from drtool.core.check import _modules
from drtool.core.report import Severity

SHARED = Path(__file__).parents[3] / "shared" / "checks.md"
TESTS = Path(__file__).parents[1]
LETTERS = {"C": Severity.CRITICAL, "E": Severity.ERROR, "W": Severity.WARNING, "I": Severity.INFO}
CHECKS = {check.id: check for check in all_checks()}


@cache
def modules() -> dict[str, list[ModuleType]]:
    found: dict[str, list[ModuleType]] = defaultdict(list)
    for package in PACKAGES:
        for name in _modules(package):
            found[name.rpartition(".")[2].replace("_", "-")].append(importlib.import_module(name))
    return found


def rows() -> Iterator[tuple[tuple[str, ...], str]]:
    """(ids, severity column) of each row of the catalogue that all agree on."""
    if not SHARED.is_file():
        pytest.skip("the catalogue of checks (../shared/checks.md) is not here")
    for line in SHARED.read_text().splitlines():
        head, _, rest = line.partition("|")
        if line.startswith("- `"):
            yield tuple(re.findall(r"`([a-z0-9-]+)`", head)), rest.partition("|")[0]


def test_every_id_of_the_catalogue_is_a_check() -> None:
    ids = [id_ for ids, _ in rows() for id_ in ids]
    assert len(ids) == len(set(ids)) == 160
    assert set(ids) <= set(CHECKS)
    assert set(CHECKS) - set(ids) == {"shared-authorities-differ", "skew-across-nodes"}


def test_one_module_a_check() -> None:
    """Where a second one asks the same of a node's files, it takes the place of the one over objects, and uses it."""
    for id_, found in modules().items():
        first, *more = found
        assert len(more) < 2, id_
        for module in more:
            assert first.__name__.startswith("snapshots.checks."), id_
            assert re.search(rf"from snapshots\.checks\S* import .*|{first.__name__}", inspect.getsource(module)), id_
            assert CHECKS[id_].find is module.find


def test_what_a_check_explains_is_a_check() -> None:
    unknown = {check.id: set(check.explains) - set(CHECKS) for check in CHECKS.values()}
    assert {id_: ids for id_, ids in unknown.items() if ids} == {}
    assert [check.id for check in CHECKS.values() if check.id in check.explains] == []


def test_severities_are_those_of_the_catalogue() -> None:
    """A module's own severity is one of its row's letters; single findings may weigh more or less."""
    for ids, column in rows():
        allowed = {LETTERS[letter] for letter in re.findall(r"\b[CEWI]\b", column)}
        for id_ in ids:
            assert not allowed or CHECKS[id_].severity in allowed, id_


@pytest.mark.parametrize("id_", sorted(CHECKS))
def test_a_check_is_documented_and_annotated(id_: str) -> None:
    module = modules()[id_][-1]
    first, _, rest = (module.__doc__ or "").partition("\n")
    assert first.endswith("."), "one sentence says what is wrong"
    assert rest.strip(), "and more why it matters"
    signature = inspect.signature(module.find)
    (subject,) = signature.parameters.values()
    assert getattr(subject.annotation, "__name__", subject.annotation) in {"Node", "Case", "Cluster", "Database"}
    assert "Iterator" in str(signature.return_annotation)
    assert isinstance(module.SEVERITY, Severity)


@cache
def written() -> str:
    return "\n".join(path.read_text() for path in TESTS.rglob("*.py") if path != Path(__file__))


@pytest.mark.parametrize("id_", sorted(CHECKS))
def test_a_test_names_the_check(id_: str) -> None:
    assert re.search(rf"\b{id_}\b|\b{id_.replace('-', '_')}\b", written())


def test_a_fault_says_how_to_mend_it() -> None:
    faults = [check for check in CHECKS.values() if check.severity >= Severity.ERROR]
    assert [check.id for check in faults if "Fix: " not in check.explanation] == []
