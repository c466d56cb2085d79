from __future__ import annotations

import pytest

from drtool.core.errors import UsageError
from snapshots.registry.keys import place
from snapshots.registry.resources import built_in, resources
from tests.registry import stored

WIDGETS = """
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: widgets.example.org}
spec:
  group: example.org
  scope: Namespaced
  names: {plural: widgets, singular: widget, kind: Widget, shortNames: [wd], categories: [shelf]}
  versions:
  - {name: v1beta1, served: true, storage: false}
  - name: v1
    served: true
    storage: true
    additionalPrinterColumns: [{name: Size, type: integer, jsonPath: .spec.size}]
"""


@pytest.mark.parametrize(
    ("words", "names"),
    [
        ("deploy", ["deployments"]),
        ("Deployment", ["deployments"]),
        ("deployments.apps", ["deployments"]),
        ("deployment.v1.apps", ["deployments"]),
        ("svc,cm", ["services", "configmaps"]),
        ("po,po", ["pods"]),
        ("wd", ["widgets"]),
        ("widgets.example.org", ["widgets"]),
        ("shelf", ["widgets"]),
        ("crd", ["customresourcedefinitions"]),
        ("psp", ["podsecuritypolicies"]),
    ],
)
def test_kinds_are_found_by_the_names_that_people_use(words: str, names: list[str]) -> None:
    found = resources(stored.bodies(WIDGETS)).find(words)
    assert [each.plural for each in found] == names


def test_all_is_kubectl_s_category() -> None:
    plurals = {each.plural for each in resources().find("all")}
    assert {"pods", "services", "deployments"} < plurals
    assert not {"secrets", "configmaps"} & plurals


def test_an_unknown_kind_names_what_is_nearest() -> None:
    with pytest.raises(UsageError, match=r"nearest: .*deploy"):
        resources().find("deplyo")


def test_keys_lead_to_their_kinds_and_back() -> None:
    known = resources(stored.bodies(WIDGETS))
    for resource in known.all:
        namespace = "shop" if resource.namespaced else ""
        found = place(resource.prefix("/registry", namespace) + b"name")
        assert found is not None
        assert (found.namespace, found.name) == (namespace, "name")
        if resource.kind != "PodSecurityPolicy":
            assert known.of(found).plural == resource.plural


def test_every_kind_of_the_api_has_a_message_in_the_field_table() -> None:
    from snapshots.registry.fields import table

    assert [each for each in built_in() if f"{each.api_version}.{each.kind}" not in table()] == []


def test_a_definition_that_is_not_well_formed_is_passed_over() -> None:
    assert resources([{"spec": None}, {"spec": {"names": 1}}, {}]).all == built_in()
