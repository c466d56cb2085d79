from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from drtool.host.root import Entry
from manifests.logs import read_container, read_containers, read_journal

LOG = """2026-11-30T04:00:00.1Z stderr F first
2026-11-30T04:00:01.1Z stderr P begun,
2026-11-30T04:00:01.2Z stderr F  ended
no line of the CRI
2026-11-30T04:00:02Z stdout F Authorization: Bearer abc.def token=xyz
"""


def log(text: str, path: str = "/var/log/pods/kube-system_etcd-cp-1_uid/etcd/0.log", cut: bool = False) -> Entry:
    return Entry(path, "file", data=text.encode(), cut=cut)


def test_parts_are_joined_and_lines_numbered() -> None:
    lines = read_container(log(LOG))
    assert [(line.text, line.evidence.line) for line in lines[:2]] == [("first", 1), ("begun, ended", 3)]
    assert lines[0].time == "2026-11-30T04:00:00.1Z"


def test_evidence_hides_tokens() -> None:
    text = read_container(log(LOG))[-1].evidence.text
    assert "abc" not in text
    assert "xyz" not in text


def test_the_tail_of_a_log_has_no_line_numbers() -> None:
    assert {line.evidence.line for line in read_container(log(LOG, cut=True))} == {None}


def test_restarts_of_a_container_are_one_log_in_order_of_time() -> None:
    base = "/var/log/pods/kube-system_etcd-cp-1_uid/etcd"
    later, earlier = log("2026-11-30T05:00:00Z stderr F b\n", f"{base}/1.log"), log(LOG, f"{base}/0.log")
    assert read_containers([later, earlier])["etcd"][-1].text == "b"


def test_a_journal_line_is_split_from_its_head() -> None:
    entry = log("2026-11-30T04:00:00+0000 cp-1 kubelet[812]: E1130 failed: x\nplain\n", "/drtool/journal/kubelet.log")
    first, second = read_journal(entry)
    assert (first.time, first.text) == ("2026-11-30T04:00:00+0000", "E1130 failed: x")
    assert (second.time, second.text) == ("", "plain")


@given(st.binary(max_size=500))
def test_any_bytes_are_a_log(data: bytes) -> None:
    read_container(Entry("/a/b/0.log", "file", data=data))
    read_journal(Entry("/j", "file", data=data))


def test_the_json_of_kubernetes_reads_as_its_text_and_that_of_etcd_stays() -> None:
    klog = '{"ts":1797288600000.0,"caller":"eviction/manager.go:380","msg":"must evict","v":0,"err":"a \\"b\\"","n":1}'
    etcd = '{"level":"warn","ts":"2026-12-14T22:50:00Z","msg":"slow fdatasync"}'
    head = "2026-12-14T22:50:00+0000 cp-1 kubelet[812]: "
    lines = read_journal(
        log("".join(f"{head}{text}\n" for text in (klog, etcd, '{"ts":1,')), "/drtool/journal/kubelet.log")
    )
    assert [line.text for line in lines] == ['"must evict" err="a \\"b\\"" n=1', etcd, '{"ts":1,']
    assert klog in lines[0].evidence.text
