"""`drtool status`"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from drtool.cli._output import columns, emit, output_option, visible
from drtool.cli._progress import shown, size
from drtool.cli._types import ANY_PATH

if TYPE_CHECKING:
    from drtool.commands.status import Report
    from snapshots.cluster import Cluster
    from snapshots.figures import Figures

BAD = 4
SHOWN = 10


@click.command(epilog="Example: drtool status snapshot.db -o json")
@click.argument("file", type=ANY_PATH)
@click.option("--progress", is_flag=True, help="Progress as lines where stderr is no terminal.")
@output_option
def command(file: Path, progress: bool, output: str) -> int:
    """The figures of `etcdutl snapshot status`, and what else FILE tells.

    FILE is a snapshot, a member's snap/db or its data directory. Exit status 4: its structure is damaged, or its
    trailing hash is not that of the file.
    """
    from drtool.commands.status import status

    with shown(progress) as listener:
        report = status(file, listener)
    emit(as_data(report), output, lambda: as_table(report))
    return 0 if report.good else BAD


def as_data(report: Report) -> dict[str, Any]:
    found = report.status
    structure = found.structure
    return {
        "schemaVersion": 1,
        "file": str(report.path),
        **(_figures(found.figures) if found.figures else {}),
        "structure": "sound" if structure.sound else "damaged",
        "faults": [{"page": fault.page, "reason": fault.reason} for fault in structure.faults],
        "metaPages": ["valid" if valid else "torn" for valid in structure.metas],
        "trailingHash": {True: "holds", False: "wrong", None: "none"}[found.trailer],
        "openInEtcd": report.live,
        **(_cluster(found.cluster) if found.cluster else {}),
    }


def _figures(figures: Figures) -> dict[str, Any]:
    return {
        "hash": figures.hash,
        "revision": figures.revision,
        "totalKey": figures.total_key,
        "totalKeyBefore36": figures.pairs,
        "totalSize": figures.total_size,
        "version": figures.version,
        "compactRevision": figures.compacted,
        "pages": figures.pages,
        "pageSize": figures.page_size,
        "freePages": figures.free,
        "prefixes": [
            {"prefix": _text(one.prefix), "keys": one.keys, "revisions": one.revisions, "size": one.size}
            for one in figures.prefixes
        ],
        "mostRewritten": [
            {"key": _text(one.key), "revisions": one.revisions, "size": one.size} for one in figures.rewritten
        ],
    }


def _cluster(cluster: Cluster) -> dict[str, Any]:
    return {
        "members": [
            {
                "id": f"{one.id:x}",
                "name": one.name,
                "peerURLs": list(one.peer_urls),
                "clientURLs": list(one.client_urls),
                "learner": one.learner,
            }
            for one in cluster.members
        ],
        "alarms": [{"member": f"{one.member:x}", "alarm": one.kind} for one in cluster.alarms],
        "leases": cluster.leases,
        "clusterVersion": cluster.version,
        "consistentIndex": cluster.consistent_index,
        "term": cluster.term,
        "authEnabled": cluster.auth,
        "downgradeTo": cluster.downgrade,
    }


def as_table(report: Report) -> str:
    found = report.status
    blocks = [columns(("FIGURE", "VALUE"), [*_figure_rows(report), *_cluster_rows(report)])]
    if found.figures and found.figures.prefixes:
        rows = [
            (_text(one.prefix), str(one.keys), str(one.revisions), size(one.size))
            for one in found.figures.prefixes[:SHOWN]
        ]
        blocks.append(columns(("LARGEST PREFIXES", "KEYS", "REVISIONS", "SIZE"), rows))
        often = [
            (_text(one.key), str(one.revisions), size(one.size)) for one in found.figures.rewritten if one.revisions > 1
        ]
        if often:
            blocks.append(columns(("MOST REWRITTEN KEYS", "REVISIONS", "SIZE"), often))
    if found.structure.faults:
        faults = [(str(fault.page), fault.reason) for fault in found.structure.faults]
        blocks.append(columns(("PAGE", "FAULT"), faults))
    return "\n\n".join(blocks)


def _figure_rows(report: Report) -> list[tuple[str, str]]:
    found = report.status
    first, second = found.structure.metas
    rows = [
        ("structure", "sound" if found.structure.sound else f"damaged ({len(found.structure.faults)} faults)"),
        ("trailing hash", {True: "holds", False: "WRONG: the file was changed or cut after it was saved",
                           None: "none: not saved by a snapshot"}[found.trailer]),
    ]  # fmt: skip
    if not (first and second):
        rows.append(("meta pages", f"page {1 if first else 0} is torn, the other one was taken"))
    if report.live:
        rows.append(("open in etcd", "yes: these figures are of no moment's state"))
    figures = found.figures
    if figures is None:
        return rows
    share = figures.free / figures.pages if figures.pages else 0
    return [
        ("hash", f"{figures.hash:x} ({figures.hash}){'' if found.structure.sound else ', of what can be read'}"),
        ("revision", str(figures.revision)),
        ("total keys", f"{figures.total_key} ({figures.pairs} as etcdutl before 3.6 counts)"),
        ("total size", f"{figures.total_size} ({size(figures.total_size)})"),
        ("version", figures.version or "none recorded (before 3.6)"),
        *rows,
        ("compacted", str(figures.compacted) if figures.compacted >= 0 else "never"),
        ("free pages", f"{figures.free} of {figures.pages} ({share:.0%}), {figures.page_size} bytes each"),
    ]


def _cluster_rows(report: Report) -> list[tuple[str, str]]:
    cluster = report.status.cluster
    if cluster is None:
        return []
    members = [
        (f"{'learner' if one.learner else 'member'} {one.id:x}", f"{one.name} {' '.join(one.peer_urls)}")
        for one in cluster.members
    ]
    alarms = [(f"ALARM {one.kind}", f"of member {one.member:x}") for one in cluster.alarms]
    more = [("auth", f"enabled, {cluster.users} users")] if cluster.auth else []
    if cluster.downgrade:
        more.append(("downgrade", f"to {cluster.downgrade} is under way"))
    return [
        *members,
        *alarms,
        *more,
        ("cluster version", cluster.version or "none recorded"),
        ("leases", str(cluster.leases)),
        ("raft index, term", f"{cluster.consistent_index}, {cluster.term or 'not recorded'}"),
    ]


def _text(data: bytes) -> str:
    return visible(data.decode(errors="backslashreplace"))
