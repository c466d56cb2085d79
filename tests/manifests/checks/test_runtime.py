"""Checks of the container runtime: each on a healthy node and on a broken one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from drtool.core.report import Severity, Status
from manifests.node import seen
from tests.builders.tree import NOW, Tree, laid, outcomes

CONFIG = "/etc/containerd/config.toml"
TOML = """version = 2
disabled_plugins = ["io.containerd.internal.v1.opt"]
[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "registry.k8s.io/pause:3.10.1"
  [plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
    SystemdCgroup = true
"""
REGISTRY = """  [plugins."io.containerd.grpc.v1.cri".registry]
    config_path = "/etc/containerd/certs.d"
"""
MIRRORS = """    [plugins."io.containerd.grpc.v1.cri".registry.mirrors."docker.io"]
      endpoint = ["https://mirror.example.org"]
"""
# lines that containerd 1.6.20 wrote when its meta.db was overwritten, and when it could not reach a registry
NO_DB = 'level=warning msg="failed to load plugin io.containerd.metadata.v1.bolt" error="invalid database"'
PANIC = "panic: invalid freelist page: 0, page type is unknown<00>"
NO_PAUSE = (
    'level=error msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-cp-1} failed, error" '
    'error="failed to get sandbox image \\"registry.k8s.io/pause:3.6\\": failed to pull image"'
)
MADE = 'level=info msg="RunPodSandbox for &PodSandboxMetadata{Name:etcd-cp-1} returns sandbox id \\"33158f51\\""'
Change = Callable[[Tree], object]


def config(text: str) -> Change:
    return lambda tree: tree.write(CONFIG, text)


def versions(containerd: str, kubelet: str = "v1.37.2") -> Change:
    return lambda tree: tree.write(
        "/drtool/versions.json", f'{{"kubelet": "{kubelet}", "containerd": "{containerd}", "crio": null}}'
    )


def journal(*lines: str) -> Change:
    return lambda tree: tree.journal("containerd", *lines)


def imported(tree: Tree) -> None:
    tree.write(CONFIG, 'imports = ["/etc/containerd/conf.d/*.toml"]\n' + TOML)
    tree.write("/etc/containerd/conf.d/docker.toml", 'version = 2\ndisabled_plugins = ["io.containerd.grpc.v1.cri"]\n')


BROKEN: list[tuple[str, Change]] = [
    ("containerd-cri-disabled", config('disabled_plugins = ["cri"]\n')),
    ("containerd-cri-disabled", config(TOML.replace("internal.v1.opt", "grpc.v1.cri"))),
    ("containerd-cri-disabled", imported),
    ("containerd-config-conflict", config(TOML + REGISTRY + MIRRORS)),
    ("containerd-config-conflict", config(TOML + TOML)),
    ("containerd-config-conflict", config("version = 2\n[plugins\n")),
    ("containerd-too-old", versions("1.4.3")),
    ("containerd-state-corrupt", journal(NO_DB)),
    ("containerd-state-corrupt", journal(PANIC, "goroutine 43 [running]:")),
    ("sandbox-image-unavailable", journal(MADE, NO_PAUSE)),
]
RISKY: list[tuple[str, Change]] = [
    ("containerd-config-conflict", config(TOML.replace("version = 2\n", ""))),
    ("containerd-config-conflict", config(TOML.replace("version = 2", "version = 3"))),
    ("sandbox-image-unavailable", config(TOML.replace("registry.k8s.io", "k8s.gcr.io"))),
]
WELL: list[tuple[str, Change]] = [
    ("containerd-cri-disabled", config(TOML)),
    ("containerd-config-conflict", config(TOML + REGISTRY)),
    ("containerd-config-conflict", lambda tree: [config(TOML + REGISTRY + MIRRORS)(tree), versions("1.4.3")(tree)]),
    ("containerd-too-old", versions("1.6.20")),
    ("containerd-too-old", versions("1.4.3", "v1.25.4")),
    ("containerd-state-corrupt", journal(PANIC, 'level=info msg="starting containerd" version=1.6.20', MADE)),
    ("sandbox-image-unavailable", config(TOML.replace("3.10.1", "3.6"))),
]


@pytest.fixture
def tree(tmp_path: Path) -> Tree:
    return laid(tmp_path)


@pytest.mark.parametrize(("id_", "change"), BROKEN)
def test_broken(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert outcome.status is Status.FAILED
    assert all(found.severity is None and found.evidence for found in outcome.findings)


@pytest.mark.parametrize(("id_", "change"), RISKY)
def test_a_risk(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    outcome = outcomes(tree.node())[id_]
    assert [found.severity for found in outcome.findings] == [Severity.WARNING] * len(outcome.findings) != []


@pytest.mark.parametrize(("id_", "change"), WELL)
def test_healthy(tree: Tree, id_: str, change: Change) -> None:
    change(tree)
    assert outcomes(tree.node())[id_].status is Status.PASSED


@pytest.mark.parametrize(
    ("text", "line"),
    [("version = 2\n[plugins]\n[plugins]\n", 3), ("a = 1\nb = 2\na = 3\nc = 4\n", 3), ("a = 1\nb = [\n  2,\n", 3)],
)
def test_what_is_no_toml_is_shown_with_its_line(tree: Tree, text: str, line: int) -> None:
    config(text)(tree)
    (found,) = outcomes(tree.node())["containerd-config-conflict"].findings
    assert (found.evidence[0].line, found.evidence[0].text) == (line, text.splitlines()[line - 1].strip())


def test_another_runtime_does_not_need_containerd(tree: Tree) -> None:
    tree.sub("/var/lib/kubelet/config.yaml", "unix://.*", "unix:///run/cri-dockerd.sock")
    config('disabled_plugins = ["cri"]\n')(tree)
    found = outcomes(tree.node())
    for id_ in (
        "containerd-cri-disabled",
        "containerd-config-conflict",
        "containerd-too-old",
        "containerd-state-corrupt",
    ):
        assert found[id_].status is Status.SKIPPED


def test_a_sandbox_made_later_says_that_the_image_is_there(tree: Tree) -> None:
    tree.write(
        "/drtool/journal/containerd.log",
        f"2026-12-14T22:00:00+00:00 cp-1 containerd[1]: {NO_PAUSE}\n"
        f"2026-12-14T23:00:00+00:00 cp-1 containerd[1]: {MADE}\n",
    )
    config(TOML)(tree)
    assert outcomes(tree.node())["sandbox-image-unavailable"].status is Status.PASSED


# ---- what containerd makes of imports; seen in `config dump` of 1.6.20 and in LoadConfig of 1.7.27, 2.0, 2.2 and 2.4

OPTIONS = """[plugins."io.containerd.grpc.v1.cri".containerd.runtimes.runc.options]
  SystemdCgroup = true
"""
IMAGE = """[plugins."io.containerd.grpc.v1.cri"]
  sandbox_image = "k8s.gcr.io/pause:3.6"
"""
ELSEWHERE = "/opt/site/runtime.toml"
UNTOLD = "untold"


def files(main: str, containerd: str = "1.7.27", /, **others: str) -> Change:
    """The main file with what it says after `version = 2`, and others below /etc/containerd/config.d."""

    def change(tree: Tree) -> None:
        tree.write(CONFIG, f"version = 2\n{main}")
        for name, text in others.items():
            tree.write(f"/etc/containerd/config.d/{name}.toml", text)
        versions(containerd, "v1.29.4")(tree)
        if containerd == UNTOLD:
            tree.replace("/drtool/versions.json", f'"{UNTOLD}"', "null")

    return change


ALL = 'imports = ["/etc/containerd/config.d/*.toml"]\n'
DRIVERS = [
    pytest.param(files(ALL, a=OPTIONS), Status.PASSED, id="imported from anywhere; by the main file's version"),
    pytest.param(files("", a=OPTIONS), Status.FAILED, id="not imported"),
    pytest.param(files('imports = ["config.d/a.toml"]\n', a=OPTIONS), Status.PASSED, id="relative to the file"),
    pytest.param(files('imports = ["config.d/*.toml"]\n', a=OPTIONS), Status.PASSED, id="a relative pattern"),
    pytest.param(files('imports = ["config.d/*.toml"]\n', "1.6.20", a=OPTIONS), Status.UNKNOWN, id="in 1.6.20"),
    pytest.param(files('imports = ["config.d/*.toml"]\n', UNTOLD, a=OPTIONS), Status.UNKNOWN, id="in no known release"),
    pytest.param(files('imports = ["config.d/a.toml"]\n', "1.6.20", a=OPTIONS), Status.PASSED, id="a name in 1.6.20"),
    pytest.param(files('imports = ["/etc/containerd/*.toml"]\n', a=OPTIONS), Status.FAILED, id="one level only"),
    pytest.param(
        files('imports = ["config.d/a.toml"]\n', a='imports = ["b.toml"]\n', b=OPTIONS), Status.PASSED, id="nested"
    ),
    pytest.param(files(ALL, a='imports = ["../config.toml"]\n' + OPTIONS), Status.PASSED, id="in a circle"),
    pytest.param(files(ALL + OPTIONS, a=IMAGE), Status.FAILED, id="1.7 replaces the table whole"),
    pytest.param(files(ALL + OPTIONS, "2.0.0", a=IMAGE), Status.PASSED, id="2.0 merges it"),
    pytest.param(files(ALL + OPTIONS, UNTOLD, a=IMAGE), Status.UNKNOWN, id="nothing tells which"),
    pytest.param(files(ALL + OPTIONS, UNTOLD, a=OPTIONS), Status.PASSED, id="all the same to either"),
    pytest.param(files(ALL, a=OPTIONS, b=IMAGE), Status.FAILED, id="the last file counts"),
    pytest.param(files(ALL + OPTIONS, a=OPTIONS.replace("true", "false")), Status.FAILED, id="the import counts"),
    pytest.param(files(ALL + OPTIONS, a='root = "/data"\n'), Status.PASSED, id="an import of something else"),
    pytest.param(files(ALL + OPTIONS, a="x = ["), Status.UNKNOWN, id="a broken import"),
    pytest.param(files(ALL + OPTIONS, "2.2.0", a="version = 3\n"), Status.UNKNOWN, id="versions 2 and 3"),
]


@pytest.mark.parametrize(("change", "status"), DRIVERS)
def test_the_driver_is_what_containerd_makes_of_all_its_files(tree: Tree, change: Change, status: Status) -> None:
    change(tree)
    assert outcomes(tree.node())["cgroup-driver-mismatch"].status is status


def test_a_replaced_table_is_shown_where_it_was_replaced(tree: Tree) -> None:
    files(ALL + OPTIONS, a=IMAGE)(tree)
    (found,) = outcomes(tree.node())["cgroup-driver-mismatch"].findings
    assert (found.evidence[1].path, found.evidence[1].line) == ("/etc/containerd/config.d/a.toml", 1)


def test_an_import_from_outside_etc_counts(tree: Tree) -> None:
    files(f'imports = ["{ELSEWHERE.replace("runtime", "*")}"]\n')(tree)
    tree.write(ELSEWHERE, 'disabled_plugins = ["io.containerd.grpc.v1.cri"]\n' + IMAGE)
    found = outcomes(tree.node())
    for id_, line in (("containerd-cri-disabled", 1), ("sandbox-image-unavailable", 3)):
        (finding,) = found[id_].findings
        assert (finding.evidence[0].path, finding.evidence[0].line) == (ELSEWHERE, line)


def test_a_file_that_is_not_imported_disables_nothing(tree: Tree) -> None:
    files(OPTIONS, a='disabled_plugins = ["io.containerd.grpc.v1.cri"]\n' + IMAGE)(tree)
    found = outcomes(tree.node())
    assert found["containerd-cri-disabled"].status is Status.PASSED
    assert found["sandbox-image-unavailable"].status is Status.PASSED


@pytest.mark.parametrize(("containerd", "status"), [("1.7.27", Status.PASSED), ("2.1.4", Status.FAILED)])
def test_mirrors_of_one_file_and_config_path_of_another(tree: Tree, containerd: str, status: Status) -> None:
    files(ALL + REGISTRY, containerd, a=MIRRORS)(tree)
    outcome = outcomes(tree.node())["containerd-config-conflict"]
    assert outcome.status is status
    lines = [(CONFIG, 4), ("/etc/containerd/config.d/a.toml", 1)] if status is Status.FAILED else []
    assert [(told.path, told.line) for found in outcome.findings for told in found.evidence] == lines


def test_an_import_without_a_version_is_read_by_the_main_files(tree: Tree) -> None:
    files(ALL, a=OPTIONS)(tree)
    assert outcomes(tree.node())["containerd-config-conflict"].status is Status.PASSED
    tree.replace(CONFIG, "version = 2\n", "")
    (found,) = outcomes(tree.node())["containerd-config-conflict"].findings
    assert "has no version" in found.title


def test_tables_of_another_version_count_for_nothing(tree: Tree) -> None:
    config(IMAGE + REGISTRY + MIRRORS)(tree)  # no version, so that only the table cri counts
    found = outcomes(tree.node())
    assert [each.severity for each in found["containerd-config-conflict"].findings] == [Severity.WARNING]
    assert found["sandbox-image-unavailable"].status is Status.PASSED


STREAMS = """[plugins.'io.containerd.grpc.v1.cri']
  disable_tcp_service = true
  stream_server_port = '0'
"""


@pytest.mark.parametrize(
    ("text", "containerd", "severities"),
    [
        ("version = 3\n" + STREAMS, "2.2.0", []),  # as `containerd config default` of 2.x has it
        ("version = 3\n" + STREAMS + "  sandbox_image = 'a'\n", "2.2.0", [Severity.WARNING]),
        ("version = 2\n[plugins.cri]\n  sandbox_image = 'a'\n", "1.6.20", [None]),
        ("version = 2\n[plugins.cri]\n  sandbox_image = 'a'\n", "2.0.0", [Severity.WARNING]),
    ],
)
def test_a_table_of_another_version(tree: Tree, text: str, containerd: str, severities: list[Severity | None]) -> None:
    config(text)(tree)
    versions(containerd)(tree)
    found = outcomes(tree.node())["containerd-config-conflict"].findings
    assert [each.severity for each in found] == severities


def test_an_import_that_is_not_there_stops_containerd(tree: Tree) -> None:
    files('imports = ["config.d/gone.toml"]\n' + OPTIONS)(tree)
    node = tree.node()
    assert outcomes(node)["containerd-config-conflict"].status is Status.UNKNOWN  # it may just not have been copied
    live = outcomes(seen(replace(node.capture, live=True), NOW))["containerd-config-conflict"]
    assert "/etc/containerd/config.d/gone.toml" in live.findings[0].title


@pytest.mark.parametrize(
    ("containerd", "status"), [("1.7.27", Status.FAILED), ("2.1.4", Status.PASSED), (UNTOLD, Status.UNKNOWN)]
)
def test_where_the_plugins_are_is_what_containerd_makes_of_all_its_files(
    tree: Tree, containerd: str, status: Status
) -> None:
    directory = '[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/usr/lib/cni"\n'
    files(ALL + directory, containerd, a=OPTIONS)(tree)
    tree.write("/etc/cni/net.d/10-net.conf", '{"cniVersion": "1.0.0", "type": "ptp"}')
    tree.write("/usr/lib/cni/ptp", b"", 0o755)
    tree.write("/opt/cni/bin/other", b"", 0o755)
    assert outcomes(tree.node())["cni-bin-dir-mismatch"].status is status


def test_a_failure_to_get_the_image_counts_whatever_the_files_say(tree: Tree) -> None:
    files("x = [")(tree)
    journal(NO_PAUSE)(tree)
    assert outcomes(tree.node())["sandbox-image-unavailable"].status is Status.FAILED


# ---- CRI-O: crio.conf, then every file of crio.conf.d in the order of their names (UpdateFromPath in CRI-O 1.34)


def crio(**files: str) -> Change:
    """CRI-O beside a containerd that nobody asks; `conf` is crio.conf, the others lie in crio.conf.d."""

    def change(tree: Tree) -> None:
        tree.sub("/var/lib/kubelet/config.yaml", "unix://.*", "unix:///var/run/crio/crio.sock")
        tree.write("/drtool/versions.json", '{"kubelet": "v1.29.4", "containerd": null, "crio": "1.27.0"}')
        for name, text in files.items():
            path = "/etc/crio/crio.conf" if name == "conf" else f"/etc/crio/crio.conf.d/{name}.conf"
            tree.write(path, text)

    return change


MANAGED = "[crio.runtime]\ncgroup_manager = %s\n"
MANAGERS = [
    pytest.param(crio(a=MANAGED % "'cgroupfs'"), Status.FAILED, id="single quotes"),
    pytest.param(crio(a="crio.runtime.cgroup_manager = 'cgroupfs'\n"), Status.FAILED, id="a dotted key"),
    pytest.param(crio(conf=MANAGED % "'cgroupfs'", a=MANAGED % '"systemd"'), Status.PASSED, id="a drop-in counts"),
    pytest.param(crio(a=MANAGED % "'systemd'", b=MANAGED % '"cgroupfs"'), Status.FAILED, id="the last one counts"),
    pytest.param(crio(a=MANAGED % "'systemd' # \"cgroupfs\""), Status.PASSED, id="a comment"),
    pytest.param(crio(a='[crio.image]\ncgroup_manager = "cgroupfs"\n'), Status.PASSED, id="another table"),
    pytest.param(crio(a="[crio.runtime]\n"), Status.PASSED, id="systemd by default"),
    pytest.param(crio(a="[crio.runtime\n"), Status.UNKNOWN, id="no TOML"),
    pytest.param(crio(), Status.UNKNOWN, id="no file"),
]


@pytest.mark.parametrize(("change", "status"), MANAGERS)
def test_the_driver_is_what_crio_makes_of_its_files(tree: Tree, change: Change, status: Status) -> None:
    change(tree)
    outcome = outcomes(tree.node())["cgroup-driver-mismatch"]
    assert outcome.status is status
    for found in outcome.findings:
        assert "cgroupfs" in found.evidence[1].text


def test_the_pause_image_is_the_used_runtimes(tree: Tree) -> None:
    config(TOML.replace("registry.k8s.io", "k8s.gcr.io"))(tree)
    crio(conf="[crio.image]\npause_image = 'registry.k8s.io/pause:3.10'\n")(tree)
    assert outcomes(tree.node())["sandbox-image-unavailable"].status is Status.PASSED
    crio(a="[crio.image]\npause_image = 'k8s.gcr.io/pause:3.6'\n")(tree)
    (found,) = outcomes(tree.node())["sandbox-image-unavailable"].findings
    assert (found.evidence[0].path, found.evidence[0].line) == ("/etc/crio/crio.conf.d/a.conf", 2)


def test_the_network_directories_are_the_used_runtimes(tree: Tree) -> None:
    config(TOML + '[plugins."io.containerd.grpc.v1.cri".cni]\n  bin_dir = "/opt/cni/bin"\n')(tree)
    crio(a="[crio.network]\nnetwork_dir = '/etc/cni/net.d'\nplugin_dirs = [\n  '/usr/lib/cni',\n]\n")(tree)
    tree.write("/etc/cni/net.d/10-net.conf", '{"cniVersion": "1.0.0", "type": "ptp"}')
    tree.write("/usr/lib/cni/ptp", b"", 0o755)
    tree.write("/opt/cni/bin/other", b"", 0o755)
    assert outcomes(tree.node())["cni-binary-missing"].status is Status.PASSED
    tree.remove("/usr/lib/cni/ptp")
    (found,) = outcomes(tree.node())["cni-binary-missing"].findings
    assert (found.evidence[1].path, found.evidence[1].line) == ("/etc/crio/crio.conf.d/a.conf", 3)
    crio(b="[crio.network]\nnetwork_dir = '/etc/other/net.d'\n")(tree)
    assert outcomes(tree.node())["cni-binary-missing"].status is Status.UNKNOWN
