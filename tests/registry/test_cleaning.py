"""What a running API server 1.37 took with `kubectl apply --server-side`, rule by rule."""

from __future__ import annotations

from typing import Any

import pytest

from snapshots.registry.cleaning import cleaned, order, reason_to_leave_out
from snapshots.registry.objects import Object
from tests.registry import stored


def nobody(_: str) -> bool:
    return False


def made(text: str) -> Object:
    (found,) = stored.registry(text).everything()
    return found


def clean(text: str) -> dict[str, Any]:
    return cleaned(made(text).body, nobody, nobody)


def test_what_the_server_fills_in_is_taken_off() -> None:
    body = clean("""
apiVersion: v1
kind: ConfigMap
metadata:
  {name: a, namespace: b, uid: u, generation: 1, creationTimestamp: t, managedFields: [], labels: {k: v},
   ownerReferences: [{uid: gone, kind: X, name: x}], deletionTimestamp: t}
data: {x: "y"}
""")
    metadata = {"name": "a", "namespace": "b", "labels": {"k": "v"}}
    assert body == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"x": "y"}}


def test_an_owner_that_is_alive_stays_named() -> None:
    found = made("""
apiVersion: v1
kind: ConfigMap
metadata: {name: a, namespace: b, ownerReferences: [{uid: alive, name: x}, {uid: gone, name: y}]}
""")
    body = cleaned(found.body, {"alive"}.__contains__, nobody)
    assert body["metadata"]["ownerReferences"] == [{"uid": "alive", "name": "x"}]


def test_a_service_gets_a_new_address_unless_it_is_headless() -> None:
    text = """
apiVersion: v1
kind: Service
metadata: {name: a, namespace: b}
spec: {clusterIP: %s, clusterIPs: [%s], ports: [{port: 80, nodePort: 30080}]}
"""
    assert clean(text % ("10.96.0.9", "10.96.0.9"))["spec"] == {"ports": [{"port": 80, "nodePort": 30080}]}
    assert clean(text % ("None", "None"))["spec"]["clusterIP"] == "None"


def test_a_claim_keeps_its_volume_where_there_will_be_one() -> None:
    found = made("""
apiVersion: v1
kind: PersistentVolumeClaim
metadata: {name: a, namespace: b, annotations: {pv.kubernetes.io/bind-completed: "yes"}}
spec: {volumeName: pv1}
status: {phase: Bound}
""")
    assert cleaned(found.body, nobody, {"pv1"}.__contains__)["spec"] == {"volumeName": "pv1"}
    bare = cleaned(found.body, nobody, nobody)
    assert bare["spec"] == {}
    assert "annotations" not in bare["metadata"]


def test_a_volume_waits_for_a_claim_of_the_same_name() -> None:
    body = clean("""
apiVersion: v1
kind: PersistentVolume
metadata: {name: pv1}
spec: {claimRef: {namespace: b, name: a, uid: u, resourceVersion: "1"}}
""")
    assert body["spec"] == {"claimRef": {"namespace": "b", "name": "a"}}


def test_a_job_loses_the_selector_that_was_made_for_it() -> None:
    body = clean("""
apiVersion: batch/v1
kind: Job
metadata: {name: a, namespace: b, labels: {job-name: a, mine: x}}
spec:
  selector: {matchLabels: {batch.kubernetes.io/controller-uid: u}}
  template: {metadata: {labels: {batch.kubernetes.io/controller-uid: u, app: j}}}
""")
    assert body["spec"] == {"template": {"metadata": {"labels": {"app": "j"}}}}
    assert body["metadata"]["labels"] == {"mine": "x"}


def test_an_account_s_token_is_filled_in_anew() -> None:
    body = clean("""
apiVersion: v1
kind: Secret
type: kubernetes.io/service-account-token
metadata:
  name: a
  namespace: b
  annotations: {kubernetes.io/service-account.name: sa, kubernetes.io/service-account.uid: u}
data: {token: eA==}
""")
    assert "data" not in body
    assert body["metadata"]["annotations"] == {"kubernetes.io/service-account.name": "sa"}


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("apiVersion: v1\nkind: Event\nmetadata: {name: a, namespace: b}", "events are history"),
        ("apiVersion: coordination.k8s.io/v1\nkind: Lease\nmetadata: {name: a, namespace: b}", "its holder makes it"),
        (
            (
                "apiVersion: v1\nkind: Pod\nmetadata:\n  {name: a, namespace: b,\n"
                "   ownerReferences: [{controller: true, kind: ReplicaSet, name: r, uid: lives}]}"
            ),
            "ReplicaSet r makes it",
        ),
        (
            (
                "apiVersion: v1\nkind: Pod\n"
                "metadata: {name: a, namespace: b, annotations: {kubernetes.io/config.mirror: x}}"
            ),
            "the kubelet makes it from a manifest",
        ),
        (
            (
                "apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: b}\n"
                'status: {conditions: [{type: Complete, status: "True"}]}'
            ),
            "it has ended and would run again",
        ),
        ("apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, namespace: b}", ""),
    ],
)
def test_what_others_make_is_left_out(text: str, why: str) -> None:
    assert reason_to_leave_out(made(text), {"lives"}.__contains__) == why


def test_what_others_need_comes_first_and_webhooks_last() -> None:
    kinds = ["ValidatingWebhookConfiguration", "Widget", "Deployment", "Service", "Secret", "CustomResourceDefinition"]
    bodies: list[dict[str, Any]] = [{"kind": kind, "metadata": {"name": "x"}} for kind in [*kinds, "Namespace"]]
    ordered = [body["kind"] for body in sorted(bodies, key=order)]
    assert ordered == ["Namespace", "CustomResourceDefinition", "Secret", "Service", "Deployment", "Widget", kinds[0]]


def test_a_field_of_a_type_that_no_server_takes_leaves_its_object_out() -> None:
    found = made("apiVersion: batch/v1\nkind: Job\nmetadata: {name: a, namespace: b}\nstatus: {conditions: true}")
    assert reason_to_leave_out(found, nobody) == "a field has a type that no API server takes"
