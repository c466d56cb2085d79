"""Outcomes as JSON and back: a bundle keeps what was found where its evidence cannot leave the node.

Checks over etcd's objects and values need the db, which holds Secrets and stays. Their outcomes on the node stand in a
bundle for what would be unknown there.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any

from drtool.core.report import Evidence, Finding, Fix, Layer, Outcome, Severity, Status
from manifests.live import read_json
from manifests.node import Node

OUTCOMES = "/drtool/outcomes.json"
MOST = 1000


def encode(outcomes: Iterable[Outcome]) -> bytes:
    kept = [
        {
            "id": outcome.id,
            "status": str(outcome.status),
            "reason": outcome.reason,
            "findings": [_encoded(finding) for finding in outcome.findings],
        }
        for outcome in outcomes
    ]
    return json.dumps({"schemaVersion": 1, "outcomes": kept}, indent=1).encode()


def _encoded(finding: Finding) -> dict[str, Any]:
    return {
        "title": finding.title,
        "evidence": [[evidence.path, evidence.line, evidence.text] for evidence in finding.evidence],
        "severity": None if finding.severity is None else int(finding.severity),
        "layer": None if finding.layer is None else int(finding.layer),
        "fix": None if finding.fix is None else [finding.fix.command, finding.fix.summary],
    }


def kept(node: Node) -> Mapping[str, Outcome]:
    """By id; nothing on a live node, and for what makes no sense."""
    if node.capture.live:
        return {}
    data = read_json(node.entry(OUTCOMES))
    items = data.get("outcomes") if isinstance(data, dict) else None
    found = (_decoded(item) for item in (items if isinstance(items, list) else [])[:MOST])
    return {outcome.id: outcome for outcome in found if outcome is not None}


def _decoded(item: Any) -> Outcome | None:
    try:
        findings = tuple(_finding(finding) for finding in item["findings"])
        return Outcome(str(item["id"]), Status(item["status"]), findings, str(item["reason"]))
    except (KeyError, TypeError, ValueError, AttributeError):
        return None


def _finding(item: Any) -> Finding:
    evidence = tuple(
        Evidence(str(path), line if isinstance(line, int) else None, str(text)) for path, line, text in item["evidence"]
    )
    severity, layer, fix = item["severity"], item["layer"], item["fix"]
    return Finding(
        str(item["title"]),
        evidence,
        None if severity is None else Severity(severity),
        None if layer is None else Layer(layer),
        None if fix is None else Fix(str(fix[0]), str(fix[1])),
    )
