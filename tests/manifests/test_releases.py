"""The tables against what the programs list themselves, and the reading of Go sources that makes them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from manifests.releases import go_source, tables, tls
from manifests.releases.replacements import FLAG_REPLACEMENTS
from manifests.releases.spelling import distance, nearest
from manifests.releases.tables import State

SHARED = Path(__file__).parents[3] / "shared" / "releases"
LAB = Path(os.environ.get("LAB", "/tmp/drtool-lab")) / "1.37.2" / "bin"


@pytest.fixture(scope="module")
def listed() -> dict[str, Any]:
    path = SHARED / "kubernetes.json"
    if not path.exists():
        pytest.skip(f"{path} is not here: nothing to hold the tables against")
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def test_flags_are_those_of_help_and_the_deprecated_ones_that_help_hides(listed: dict[str, Any]) -> None:
    for release, told in listed.items():
        version = tuple(map(int, release.split(".")))
        for component, program in told["components"].items():
            flags = tables.flags(component, version)
            deprecated = tables.deprecated_flags(component, version)
            assert flags is not None
            assert deprecated is not None
            assert set(program["flags"]) <= flags
            assert flags - set(program["flags"]) <= deprecated


def test_gates_and_plugins_are_exactly_those_of_the_programs(listed: dict[str, Any]) -> None:
    for release, told in listed.items():
        version = tuple(map(int, release.split(".")))
        gates = tables.gates(version)
        assert gates is not None
        assert {name: (g.stage, g.default, g.locked) for name, g in gates.items()} == {
            name: (g["stage"], g["default"], g["locked"]) for name, g in told["featureGates"].items()
        }
        assert tables.plugins(version) == set(told["components"]["kube-apiserver"]["admissionPlugins"])


def test_etcd_flags_cover_what_help_lists_but_for_words_that_are_no_flags() -> None:
    path = SHARED / "etcd.json"
    if not path.exists():
        pytest.skip(f"{path} is not here: nothing to hold the tables against")
    for line, told in json.loads(path.read_text()).items():
        version = tuple(map(int, line.split(".")))
        flags = tables.flags("etcd", version)
        gates = tables.gates(version, "etcd")
        assert flags is not None
        assert gates is not None
        assert set(told["flags"]) - flags <= {"user", "discovery", "discovery-proxy"}
        assert set(gates) == set(told["featureGates"])


@pytest.mark.parametrize(
    ("program", "flag", "accepted"),
    [
        ("kube-apiserver", "--kubelet-port=1", True),
        ("kube-apiserver", "--apiserver-count=1", True),
        ("kube-controller-manager", "--node-sync-period=1s", True),
        ("kube-controller-manager", "--concurrent-service-syncs=1", False),
        ("kube-scheduler", "--address=127.0.0.1", False),
        ("kubelet", "--pod-infra-container-image=pause", False),
        ("etcd", "--user=x", False),
        ("etcd", "--discovery=x", False),
        ("etcd", "--cluster-active-size=1", True),
    ],
)
def test_the_programs_agree_where_help_is_not_the_whole_truth(program: str, flag: str, *, accepted: bool) -> None:
    version = (3, 7, 3) if program == "etcd" else (1, 37, 2)
    verdict = tables.explain_flag(program, flag.partition("=")[0], version)
    assert verdict is not None
    assert verdict.accepted is accepted
    if not (LAB / program).exists():
        pytest.skip(f"{LAB / program} is not built: only the table was asked")
    ran = subprocess.run([LAB / program, flag, "--version"], capture_output=True, text=True, check=False)
    assert (ran.returncode == 0) is accepted


def test_a_removed_flag_names_the_release_and_the_replacement() -> None:
    verdict = tables.explain_flag("kube-scheduler", "--address", (1, 24, 2))
    assert verdict is not None
    assert verdict.why == "was removed in 1.24; use --bind-address"
    sandbox = tables.explain_flag("kubelet", "--pod_infra_container_image", (1, 35, 0))
    assert sandbox is not None
    assert (sandbox.state, sandbox.last) == (State.REMOVED, "1.34")
    before = tables.explain_flag("kubelet", "--pod-infra-container-image", (1, 34, 4))
    assert before is not None
    assert before.accepted


def test_a_flag_of_a_later_release_a_typing_error_and_a_stranger_differ() -> None:
    later = tables.explain_flag("kube-apiserver", "authentication-config", (1, 28, 0))
    typing_error = tables.explain_flag("kube-apiserver", "--etcd-sevrers", (1, 36, 0))
    stranger = tables.explain_flag("kube-apiserver", "--frobnicate", (1, 36, 0))
    assert later is not None
    assert typing_error is not None
    assert stranger is not None
    assert later.why == "exists only from 1.29 on"
    assert typing_error.nearest == "etcd-servers"
    assert (stranger.state, stranger.nearest) == (State.UNKNOWN, "")


def test_etcd_names_the_stable_flag_for_an_experimental_one_that_is_gone() -> None:
    verdict = tables.explain_flag("etcd", "--experimental-peer-skip-client-san-verification", (3, 7, 0))
    assert verdict is not None
    assert verdict.why == "was removed in 3.7; use --peer-skip-client-san-verification"


def test_gates_tell_removed_from_kubeadms_own() -> None:
    gone = tables.explain_gate("EphemeralContainers", (1, 30, 0))
    kubeadm = tables.explain_gate("ControlPlaneKubeletLocalMode", (1, 31, 0))
    assert gone is not None
    assert kubeadm is not None
    assert gone.why == "was removed in 1.27; use nothing, the feature is always on"
    assert (kubeadm.state, "kubeadm" in kubeadm.why) == (State.UNKNOWN, True)


def test_a_release_that_the_tables_do_not_cover_gives_none() -> None:
    for version in ((1, 23, 17), (1, 38, 0), (2, 30, 0)):
        assert tables.flags("kubelet", version) is None
        assert tables.explain_gate("AllAlpha", version) is None
        assert tables.plugins(version) is None
        assert tables.unknown_kubelet_fields({}, version) is None
    assert tables.flags("etcd", (3, 3, 0)) is None
    with pytest.raises(ValueError, match="no release data"):
        tables.flags("cloud-controller-manager", (1, 30))


def test_gate_pairs_with_prefixes_and_without_values() -> None:
    assert list(tables.split_gates("A=true, kube:B=false,C")) == [
        ("", "A", "true"),
        ("kube", "B", "false"),
        ("", "C", ""),
    ]


def test_kubelet_fields_are_checked_in_depth() -> None:
    config = {
        "kind": "KubeletConfiguration",
        "authentication": {"x509": {"clientCaFile": "/ca"}},
        "logging": {"options": {"json": {"infoBufferSize": "0"}}},
        "evictionHard": {"memory.available": "100Mi"},
        "reservedMemory": [{"numaNode": 0, "limit": {}}],
        "podPidLimit": 5,
    }
    found = tables.unknown_kubelet_fields(config, (1, 37))
    assert found is not None
    assert [(path, verdict.nearest) for path, verdict in found] == [
        (("authentication", "x509", "clientCaFile"), "clientCAFile"),
        (("reservedMemory", 0, "limit"), "limits"),
        (("podPidLimit",), "podPidsLimit"),
    ]


@pytest.mark.parametrize(
    ("field", "known"),
    [
        ({"crashLoopBackOff": {}}, True),
        ({"crashLoopBackOff": None}, True),
        ({"crashLoopBackOff": {"maxContainerRestartPeriod": None}}, True),
        ({"crashLoopBackOff": {"maxContainerRestartPeriod": "0s"}}, False),
        ({"preloadedImagesVerificationAllowlist": []}, True),
        ({"imagePullCredentialsVerificationPolicy": ""}, True),
        ({"imageMaximumGCAge": "0s"}, True),
        ({"imageMaximumGCAge": "1h"}, False),
        ({"podLogsDir": ""}, True),
        ({"podLogsDir": "/srv"}, False),
        ({"failCgroupV1": False}, False),  # a pointer: false is said
        ({"userNamespaces": {}}, True),
        ({"logging": {"options": {"text": {"infoBufferSize": "0"}}}}, True),
        ({"logging": {"options": {"text": {"splitStream": True}}}}, False),
    ],
)
def test_a_field_of_a_later_kubelet_without_a_value_is_no_loss(field: dict[str, object], known: bool) -> None:
    found = tables.unknown_kubelet_fields(field, (1, 28))
    assert found is not None
    assert (not found) is known
    assert all(verdict.state is State.NOT_YET for _, verdict in found)


def test_a_field_that_moved_into_another_struct_was_known_before() -> None:
    config = {"logging": {"options": {"json": {"infoBufferSize": "1Mi"}}}}
    assert [tables.unknown_kubelet_fields(config, (1, minor)) for minor in (24, 29, 30, 37)] == [(), (), (), ()]


def test_replacements_are_of_flags_that_some_release_had() -> None:
    known: dict[str, set[str]] = {component: set(tables._flag_table(component)) for component in tables.COMPONENTS}
    known[""] = set().union(*known.values())
    etcd_2 = {"debug", "log-package-levels"}
    assert [(c, f) for c, f in FLAG_REPLACEMENTS if f not in known[c] | etcd_2] == []


def test_http2_needs_suites_that_are_known() -> None:
    assert tls.HTTP2_SUITES < tls.SECURE_SUITES
    assert not tls.SECURE_SUITES & tls.INSECURE_SUITES


@given(st.text("abc-", max_size=8), st.text("abc-", max_size=8))
def test_distance_is_symmetric_and_zero_only_for_equals(one: str, other: str) -> None:
    assert distance(one, other, 9) == distance(other, one, 9)
    assert (distance(one, other, 9) == 0) == (one == other)


def test_nearest_stays_within_two_edits() -> None:
    assert nearest("etcd-srevers", ["etcd-servers", "event-ttl"]) == "etcd-servers"
    assert nearest("etcd-servants", ["etcd-servers"]) == ""


GO = """
// fs.StringVar(&x, "not-this", "", "")
func (s *Options) AddFlags(fs *pflag.FlagSet) {
	fs.StringVar(&s.A, "one-flag", s.A, "usage, with (brackets) and \\"quotes\\"")
	fs.Var(cliflag.New(&s.B), otherName, ""+
		"Deprecated: nothing")
	fs.MarkDeprecated("one-flag", "use --other-flag instead")
}
const otherName = "other-flag"
var table = map[featuregate.Feature]featuregate.VersionedSpecs{
	features.Foo: {
		{Version: version.MustParse("1.31"), Default: true, PreRelease: featuregate.Beta},
		{Version: version.MustParse("1.20"), Default: false, PreRelease: featuregate.Alpha, LockToDefault: true},
	},
}
"""


def test_go_sources_are_read() -> None:
    source = go_source.without_comments(GO)
    assert [name for name, _ in go_source.registrations(source)] == ['"one-flag"', "otherName"]
    assert list(go_source.deprecations(source)) == [('"one-flag"', '"use --other-flag instead"')]
    assert go_source.constants(source) == {"otherName": "other-flag"}
    (found,) = go_source.gates(source)
    assert found == (
        "features.Foo",
        (go_source.GateSpec(20, "ALPHA", False, True), go_source.GateSpec(31, "BETA", True, False)),
    )
