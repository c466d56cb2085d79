"""Blame: what a fault explains is its consequence, a symptom folds under faults below, independent faults stay two."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import permutations

from hypothesis import given
from hypothesis import strategies as st

from drtool.core.causes import Verdict, judge
from drtool.core.check import Check
from drtool.core.report import Finding, Layer, Outcome, Role, Severity, Status


def check(
    id_: str,
    layer: Layer = Layer.HOST,
    explains: tuple[str, ...] = (),
    symptom: bool = False,
    severity: Severity = Severity.CRITICAL,
) -> Check:
    def find(_: object) -> Iterator[Finding]:
        yield Finding(id_)

    return Check(id_, layer, severity, "", find, explains, symptom)


def verdict(*checks: Check, **findings: Finding) -> Verdict:
    outcomes = [
        Outcome(one.id, Status.FAILED, (findings.get(one.id.replace("-", "_"), Finding(one.id)),)) for one in checks
    ]
    return judge(outcomes, checks)


def test_a_fault_explains_through_any_number_of_steps() -> None:
    checks = (check("a", explains=("b",)), check("b", explains=("c",)), check("c"))
    for order in permutations(checks):
        found = verdict(*order)
        assert found.root_causes == ("a",)
        assert {judged.id: judged.caused_by for judged in found.findings} == {"a": (), "b": ("a",), "c": ("a",)}


def test_two_independent_faults_are_two_causes_lowest_layer_first() -> None:
    found = verdict(check("z-etcd", Layer.ETCD), check("a-api", Layer.APISERVER), check("m-host", Layer.HOST))
    assert found.root_causes == ("m-host", "z-etcd", "a-api")


def test_a_symptom_folds_under_any_fault_in_its_layer_or_below() -> None:
    symptom = check("not-ready", Layer.APISERVER, symptom=True)
    assert verdict(symptom, check("etcd-fault", Layer.ETCD)).root_causes == ("etcd-fault",)
    assert verdict(symptom, check("api-fault", Layer.APISERVER)).root_causes == ("api-fault",)
    assert verdict(symptom, check("cni-fault", Layer.CNI)).root_causes == ("not-ready", "cni-fault")
    assert verdict(symptom).root_causes == ("not-ready",)


def test_a_warning_is_a_risk_and_explains_nothing() -> None:
    found = verdict(check("w", explains=("c",), severity=Severity.WARNING), check("c"))
    assert found.root_causes == ("c",)
    assert found.findings[-1].role is Role.RISK


def test_a_finding_may_differ_from_its_check_in_severity_and_layer() -> None:
    softened = verdict(check("c"), c=Finding("c", severity=Severity.WARNING))
    assert softened.root_causes == ()
    moved = verdict(check("a", Layer.HOST), check("b", Layer.ETCD), a=Finding("a", layer=Layer.CNI))
    assert moved.root_causes == ("b", "a")


def test_checks_that_explain_each_other_blame_the_lowest() -> None:
    found = verdict(check("up", Layer.ETCD, explains=("down",)), check("down", Layer.HOST, explains=("up",)))
    assert found.root_causes == ("down",)


IDS = ("a", "b", "c", "d", "e")
CHECKS = st.lists(
    st.builds(
        check,
        st.sampled_from(IDS),
        st.sampled_from(list(Layer)),
        st.lists(st.sampled_from(IDS), max_size=3).map(tuple),
        st.booleans(),
        st.sampled_from(list(Severity)),
    ),
    unique_by=lambda one: one.id,
)


@given(CHECKS)
def test_wherever_something_is_wrong_something_is_to_blame(checks: list[Check]) -> None:
    found = verdict(*checks)
    faults = {one.id for one in checks if one.severity >= Severity.ERROR}
    assert set(found.root_causes) <= faults
    assert bool(found.root_causes) == bool(faults)
    for judged in found.findings:
        assert (judged.role is Role.CONSEQUENCE) == bool(judged.caused_by)
        assert set(judged.caused_by) <= set(found.root_causes)


def test_each_finding_of_a_check_is_blamed_by_its_own_layer() -> None:
    """A fault explains from the lowest of its findings on; a symptom below a fault stays a cause."""
    low, high = Finding("fault of etcd", layer=Layer.ETCD), Finding("fault of controllers", layer=Layer.CONTROLLERS)
    symptom = check("not-ready", Layer.APISERVER, symptom=True)
    for findings in ((low, high), (high, low)):
        outcomes = [
            Outcome("fault", Status.FAILED, findings),
            Outcome("not-ready", Status.FAILED, (Finding("etcd is not ready", layer=Layer.ETCD),)),
        ]
        assert judge(outcomes, (check("fault"), symptom)).root_causes == ("fault",)
    said = (Finding("etcd is not ready", layer=Layer.ETCD), Finding("the API server is not ready"))
    for findings in (said, said[::-1]):
        outcomes = [
            Outcome("api-fault", Status.FAILED, (Finding("api-fault"),)),
            Outcome("not-ready", Status.FAILED, findings),
        ]
        found = judge(outcomes, (check("api-fault", Layer.APISERVER), symptom))
        assert {one.finding.title: one.caused_by for one in found.findings if one.id == "not-ready"} == {
            "etcd is not ready": (),
            "the API server is not ready": ("api-fault",),
        }
