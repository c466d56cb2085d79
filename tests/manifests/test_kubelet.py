"""The kubelet's flags as systemd puts them together, and its configuration."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from drtool.host.root import Entry
from manifests.kubelet import kubelet_flags, read_environment, read_unit
from tests.builders.tree import laid

UNIT = "/usr/lib/systemd/system/kubelet.service"
DROP_IN = f"{UNIT}.d/10-kubeadm.conf"
KUBEADM = """[Service]
Environment="KUBELET_KUBECONFIG_ARGS=--kubeconfig=/etc/kubernetes/kubelet.conf"
Environment="KUBELET_CONFIG_ARGS=--config=/var/lib/kubelet/config.yaml"
EnvironmentFile=-/var/lib/kubelet/kubeadm-flags.env
EnvironmentFile=-/etc/default/kubelet
ExecStart=
ExecStart=/usr/bin/kubelet $KUBELET_KUBECONFIG_ARGS $KUBELET_CONFIG_ARGS $KUBELET_KUBEADM_ARGS $KUBELET_EXTRA_ARGS
"""


def entries(**files: str) -> dict[str, Entry]:
    return {path: Entry(path, "file", data=text.encode()) for path, text in files.items()}


def flags(files: dict[str, str]) -> dict[str, str]:
    captured = entries(**files)
    return {flag.name: flag.value for flag in kubelet_flags(read_unit("kubelet.service", captured), captured)}


def test_kubeadms_drop_in() -> None:
    found = flags(
        {
            UNIT: "[Service]\nExecStart=/usr/bin/kubelet\n",
            DROP_IN: KUBEADM,
            "/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--node-ip=192.0.2.1 --v 4"\n',
            "/etc/default/kubelet": "KUBELET_EXTRA_ARGS=--hostname-override=cp-1\n",
        }
    )
    assert found == {
        "kubeconfig": "/etc/kubernetes/kubelet.conf",
        "config": "/var/lib/kubelet/config.yaml",
        "node-ip": "192.0.2.1",
        "v": "4",
        "hostname-override": "cp-1",
    }


def test_a_drop_in_of_etc_replaces_the_one_of_the_same_name() -> None:
    found = flags(
        {
            DROP_IN: "[Service]\nExecStart=/k --config=/old\n",
            "/etc/systemd/system/kubelet.service.d/10-kubeadm.conf": "[Service]\nExecStart=/k --config=/new\n",
        }
    )
    assert found == {"config": "/new"}


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        ("/usr/bin/kubelet --config /a --v=2", {"config": "/a", "v": "2"}),
        ("/usr/bin/kubelet --fail_swap_on --config=/a", {"fail-swap-on": "true", "config": "/a"}),
        ("/usr/bin/kubelet --root-dir=${DIR}/kubelet", {"root-dir": "/data/kubelet"}),
        ("/usr/bin/kubelet $ABSENT --v=1", {"v": "1"}),
        ("/usr/bin/kubelet \\\n  --v=1 \\\n  --config=/a", {"v": "1", "config": "/a"}),
        (
            "/usr/bin/kubelet \\\n  --v=1 \\\n # --container-runtime=remote \\\n  --config=/a",
            {"v": "1", "config": "/a"},
        ),
        ('/usr/bin/kubelet "unbalanced', {}),
    ],
)
def test_words_of_a_command(command: str, expected: dict[str, str]) -> None:
    assert flags({UNIT: f"[Service]\nEnvironment=DIR=/data\nExecStart={command}\n"}) == expected


def test_without_a_unit_the_usual_environment_files_speak() -> None:
    found = flags({"/var/lib/kubelet/kubeadm-flags.env": 'KUBELET_KUBEADM_ARGS="--node-ip=::1"\nA-B=--v=4\n'})
    assert found == {"node-ip": "::1"}


def test_lines_of_directives_and_variables() -> None:
    unit = read_unit("kubelet.service", entries(**{UNIT: "[Unit]\n# x\nAfter=a \\\n  b\n[Service]\nRestart=always\n"}))
    assert unit.all("Restart")[0].evidence.line == 6
    [setting] = read_environment(Entry("/etc/default/kubelet", "file", data=b"# x\nA='b c'\n"))
    assert (setting.key, setting.value, setting.evidence.line) == ("A", "b c", 2)


# What systemd 252's own parser made of each file (its environment.d generator prints it).
@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('A="--v=2 \\\n  --w=3"\n', {"A": "--v=2   --w=3"}),
        ("A=--v=2 \\\n  --w=3  \nB=1\n", {"A": "--v=2   --w=3", "B": "1"}),
        ("A='x y' \"z\"  \n", {"A": "x yz"}),
        ('A="q\\"r\\n"\n', {"A": 'q"r\\n'}),
        ("A=a\\ b\\\\\n", {"A": "a b\\"}),
        ('A="multi\nline"\n', {"A": "multi\nline"}),
        ('A=not"quoted" \n', {"A": 'not"quoted"'}),
        ("A=x #no comment\n#B=1\n;C=1\nD = 1\n", {"A": "x #no comment", "D": "1"}),
        ("export A=1\nB=2\r\n", {"B": "2"}),
        ('A="open\nB=1\n', {"A": "open\nB=1\n"}),
        ("A=1\nA=2\n", {"A": "2"}),
    ],
)
def test_an_environment_file_reads_as_systemd_reads_it(text: str, expected: dict[str, str]) -> None:
    found = read_environment(Entry("/etc/default/kubelet", "file", data=text.encode()))
    assert {setting.key: setting.value for setting in found} == expected


def test_a_value_over_several_lines_gives_flags_at_the_line_of_its_name() -> None:
    text = '# \\\nKUBELET_EXTRA_ARGS="--v=2 \\\n  --fail-swap-on=false"\n'
    captured = entries(**{"/etc/default/kubelet": text})
    found = kubelet_flags(read_unit("kubelet.service", captured), captured)
    assert [(flag.name, flag.value, flag.evidence.line) for flag in found] == [
        ("v", "2", 2),
        ("fail-swap-on", "false", 2),
    ]
    assert "--fail-swap-on=false" in found[1].evidence.text


def test_a_comment_that_ends_in_a_backslash_ends_there() -> None:
    unit = read_unit("kubelet.service", entries(**{UNIT: "[Service]\n# x \\\nRestart=always\n"}))
    assert [(one.value, one.evidence.line) for one in unit.all("Restart")] == [("always", 3)]


def test_a_flag_wins_over_the_configuration(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    kubelet = tree.node().kubelet
    assert kubelet.static_pod_path == "/etc/kubernetes/manifests"
    assert kubelet.setting("cgroup-driver", "cgroupDriver")[0] == "systemd"
    tree.write("/etc/default/kubelet", "KUBELET_EXTRA_ARGS=--pod-manifest-path=/srv/pods/ --hostname-override=CP-9\n")
    kubelet = tree.node().kubelet
    assert (kubelet.static_pod_path, kubelet.node_name) == ("/srv/pods", "cp-9")


def test_a_configuration_that_cannot_be_read_is_said(tmp_path: Path) -> None:
    tree = laid(tmp_path)
    tree.write("/var/lib/kubelet/config.yaml", "kind: [\n")
    assert tree.node().kubelet.config is None
    assert "/var/lib/kubelet/config.yaml" in tree.node().kubelet.config_problem
    tree.remove("/var/lib/kubelet/config.yaml")
    assert tree.node().kubelet.config_problem == "No such file or directory"


@given(st.text(), st.text())
def test_any_unit_and_environment_give_flags(unit: str, environment: str) -> None:
    files = entries(**{UNIT: unit, DROP_IN: f"[Service]\nExecStart=/k $A {unit}", "/etc/default/kubelet": environment})
    kubelet_flags(read_unit("kubelet.service", files), files)
    kubelet_flags(read_unit("absent.service", files), files)
