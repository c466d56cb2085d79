"""etcd's own troubles: space, and members that are no more."""

from __future__ import annotations

from drtool.plans import site
from drtool.plans.fix import Case, Repair
from drtool.plans.site import NodeStep
from snapshots.steps.members import DisarmNoSpace, FreeSpace, RemoveMember


def free_space(case: Case) -> Repair:
    """Compacted once, then each member defragmented in turn, so that the others go on; the alarm is cleared last."""
    etcd = site.present(case.node, "etcd")
    own = (*site.local_endpoints(case.node), *(etcd.names("advertise-client-urls") if etcd else ()))
    others = [url for url in case.etcd.answering if url not in own]
    steps: list[NodeStep] = [FreeSpace(site.etcd_access(case.node), compact=True)]
    steps += [FreeSpace(site.etcd_access(case.node, url), compact=False) for url in others]
    steps.append(DisarmNoSpace(site.etcd_access(case.node)))
    hint = "if it fills again soon: raise --quota-backend-bytes, or find what fills it (drtool status)"
    return Repair(tuple(steps), by_hand=(hint,))


def remove_dead(case: Case) -> Repair:
    """One member that does not answer, while a majority without it does; with more of them a person must judge."""
    silent, answering = case.etcd.silent, len(case.etcd.answering)
    own = site.present(case.node, "etcd")
    dead = [one for one in silent if own is None or one.name != own.value("name")]
    if len(dead) != 1 or answering * 2 <= answering + len(silent):
        return Repair(by_hand=tuple(f"{finding.title}: decide which member goes" for finding in case.findings))
    (one,) = dead
    step = RemoveMember(site.etcd_access(case.node), one.id, one.name, one.peer_urls)
    return Repair(
        (step,), by_hand=(f"where {one.name or one.id} ran: drtool restore --node --join URL, or kubeadm reset",)
    )


BUILDERS = {"etcd-nospace": free_space, "etcd-membership-stale": remove_dead}
