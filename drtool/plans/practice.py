"""A plan as a rehearsal can carry it out: there is an etcd, and no API server to wait for or to change objects in."""

from __future__ import annotations

from dataclasses import replace

import manifests.steps.cluster
from drtool.core.plan import Plan
from drtool.host.machine import Host


def without_api_server(plan: Plan[Host]) -> Plan[Host]:
    """Steps that talk to the API server become lines that say so: nothing is left out silently."""
    asking = [step for step in plan.steps if type(step).__module__ == manifests.steps.cluster.__name__]
    said = tuple(f"left out, a rehearsal has no API server: {step.describe()}" for step in asking)
    return replace(plan, steps=tuple(step for step in plan.steps if step not in asking), by_hand=(*plan.by_hand, *said))
