"""What a drill says to others: one self-contained HTML page, and metrics. Pure: values in, text out."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from string import Template

from drtool.commands.drill import Drill, Phase

WIDTH, BAR, GAP = 720, 22, 6
TREND_HEIGHT = 90
METRICS = (
    ("last_timestamp_seconds", "When the last drill began."),
    ("last_success", "1 where the last drill proved the backup."),
    ("rpo_seconds", "Age of the newest revision in the backup when the drill began."),
    ("rto_seconds", "From the first byte fetched to the last comparison."),
    ("not_proven", "How many things the drill did not prove."),
)

PAGE = Template("""\
<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<title>Drill of backup $backup</title>
<style>
  body { font: 15px/1.5 system-ui, sans-serif; max-width: 46rem; margin: 2rem auto; padding: 0 1rem; color: #111; }
  h1 { font-size: 1.4rem; } h2 { font-size: 1.1rem; margin-top: 2rem; }
  .verdict { border: 2px solid #111; padding: .5rem 1rem; font-weight: bold; }
  table { border-collapse: collapse; } td, th { padding: .15rem 1rem .15rem 0; text-align: left; vertical-align: top; }
  td.number { text-align: right; font-variant-numeric: tabular-nums; }
  svg text { font: 12px system-ui, sans-serif; } pre { background: #f2f2f2; padding: .5rem 1rem; overflow-x: auto; }
  @media print { body { margin: 0; max-width: none; } pre { border: 1px solid #999; } h2 { break-after: avoid; } }
</style>
</head>
<body>
<h1>Drill of backup $backup</h1>
<p class="verdict">$verdict</p>
<table>
<tr><th>cluster</th><td>$cluster</td></tr>
<tr><th>began</th><td>$at</td></tr>
<tr><th>RPO</th><td>$rpo: the age of the newest revision that came back</td></tr>
<tr><th>RTO</th><td>$rto: from the first byte fetched to the last comparison</td></tr>
<tr><th>booted</th><td>$booted</td></tr>
</table>
<h2>Where the time went</h2>
$timeline
<h2>Proven</h2>
<ul>$proven</ul>
<h2>Not proven</h2>
<ul>$not_proven</ul>
<h2>Past drills of this cluster</h2>
$trend
<h2>Again</h2>
<pre>drtool drill $backup
drtool restore $backup --to DIRECTORY</pre>
</body>
</html>
""")


def html(found: Drill, past: Sequence[Drill]) -> str:
    """No script, no link, nothing fetched: it can be mailed, filed and printed. `past` oldest first."""
    booted = [f"etcd {found.etcd}"] if found.etcd else []
    booted += [f"kube-apiserver {found.kubernetes}"] if found.kubernetes else []
    return PAGE.substitute(
        backup=escape(found.backup),
        cluster=escape(found.cluster),
        verdict="PROVEN: it comes back" if found.good else f"FAILED at {escape(found.failed)}",
        at=f"{found.at:%Y-%m-%d %H:%M:%S} UTC",
        rpo=_duration(found.rpo),
        rto=_duration(found.rto),
        booted=escape(", ".join(booted)) or "nothing",
        timeline=_timeline(found.phases),
        proven=_list(found.proven),
        not_proven=_list(found.not_proven) or "<li>nothing was left out</li>",
        trend=_trend([*past, found]),
    )


def _list(lines: Sequence[str]) -> str:
    return "".join(f"<li>{escape(line)}</li>" for line in lines)


def _timeline(phases: Sequence[Phase]) -> str:
    """Phases one after the other, each a bar where it lay in time, with its seconds in words."""
    whole = sum(phase.seconds for phase in phases) or 1.0
    height = len(phases) * (BAR + GAP) + GAP
    parts, begun = [], 0.0
    for number, phase in enumerate(phases):
        x, width = begun / whole * WIDTH * 0.6, max(1.0, phase.seconds / whole * WIDTH * 0.6)
        y = GAP + number * (BAR + GAP)
        parts.append(f'<rect x="{x:.1f}" y="{y}" width="{width:.1f}" height="{BAR}" fill="#456"/>')
        words = f"{escape(phase.name)}: {phase.seconds:.2f} s"
        parts.append(f'<text x="{x + width + 6:.1f}" y="{y + BAR - 7}">{words}</text>')
        begun += phase.seconds
    return f'<svg role="img" aria-label="timeline" width="{WIDTH}" height="{height}">{"".join(parts)}</svg>'


def _trend(drills: Sequence[Drill]) -> str:
    """RTO of each drill as a column; a failed one is hollow and says so. The same numbers follow as a table."""
    shown = drills[-30:]
    highest = max((drill.rto for drill in shown), default=0.0) or 1.0
    step = min(60.0, WIDTH / max(1, len(shown)))
    columns = []
    for number, drill in enumerate(shown):
        height = max(2.0, drill.rto / highest * (TREND_HEIGHT - 20))
        style = 'fill="#456"' if drill.good else 'fill="none" stroke="#111" stroke-width="2"'
        columns.append(
            f'<rect x="{number * step + 2:.1f}" y="{TREND_HEIGHT - height:.1f}" width="{step - 4:.1f}" '
            f'height="{height:.1f}" {style}/>'
        )
    rows = "".join(
        f"<tr><td>{drill.at:%Y-%m-%d %H:%M}</td><td>{'proven' if drill.good else 'FAILED'}</td>"
        f'<td class="number">{drill.rto:.1f} s</td><td>{escape(drill.backup)}</td></tr>'
        for drill in reversed(shown)
    )
    picture = f'<svg role="img" aria-label="trend" width="{WIDTH}" height="{TREND_HEIGHT}">{"".join(columns)}</svg>'
    return f"{picture}<table><tr><th>drill</th><th>verdict</th><th>RTO</th><th>backup</th></tr>{rows}</table>"


def _duration(seconds: float) -> str:
    if seconds < 120:
        return f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 7200 else f"{seconds / 3600:.1f} h"


def openmetrics(found: Drill) -> str:
    """For node_exporter's textfile collector: OpenMetrics 1.0 without timestamps."""
    values = {
        "last_timestamp_seconds": found.at.timestamp(),
        "last_success": float(found.good),
        "rpo_seconds": found.rpo,
        "rto_seconds": found.rto,
        "not_proven": float(len(found.not_proven)),
    }
    lines = []
    for name, words in METRICS:
        metric = f"drtool_drill_{name}"
        lines += [f"# TYPE {metric} gauge", *([f"# UNIT {metric} seconds"] if name.endswith("_seconds") else [])]
        lines += [f"# HELP {metric} {words}", f'{metric}{{cluster="{found.cluster}"}} {values[name]!r}']
    return "\n".join([*lines, "# EOF", ""])
