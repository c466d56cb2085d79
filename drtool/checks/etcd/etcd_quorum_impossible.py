"""More than half of etcd's voting members must be alive and reachable.

With two members one loss is enough: a second control plane that joined with the address of the wrong interface stops
the first one too. Without a quorum etcd elects nobody (`is starting a new election` for ever) and answers nothing;
learners do not vote, and a single member needs no one.

Fix: bring a lost member back. Where that cannot be: rebuild the cluster from the member with the newest data (`drtool
survivors`), then join the others anew.
"""

import re
from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Fix, Severity
from manifests.etcd import asked, recent_log
from manifests.identity import members, url_addresses
from manifests.logs import Line

SEVERITY = Severity.CRITICAL
EXPLAINS = ("container-exited", "component-not-ready", "etcd-slow-disk", "endpoint-is-one-node")
FIX = Fix("drtool survivors DIR...", "finds the member with the newest data and the plan to rebuild from it")
LED = re.compile(r"elected leader|became leader|established leader")
LEADERLESS = re.compile(r"is starting a new election|lost leader|no leader|became pre-candidate")
ELECTIONS = 2
PEER = re.compile(r'"remote-peer-id":"([0-9a-f]+)"|"peer-id":"([0-9a-f]+)"|"remote-member-id":"([0-9a-f]+)"')
FAILING = re.compile(r"prober detected unhealthy|peer became inactive|failed to reach the peer|lost TCP streaming")
NAT = ("10.0.2.15", "10.0.3.15")
"""What every VirtualBox machine calls itself on its first and second NAT interface: joined by the wrong one."""
DIALLED = re.compile(r"dial tcp \[?([0-9a-fA-F.:]+?)\]?:\d+: ")


def find(case: Case) -> Iterator[Finding]:
    state = asked(case.node)
    if state is not None and any(answer.leader for answer in state.status):
        return  # a leader is there: the members have just elected it
    voters, said = _voters(case)
    needed = len(voters) // 2 + 1
    if len(voters) < 2:
        return
    lost = _unstarted(case) | _misplaced(case)
    silent, line = _unreachable(case)
    gone = lost | (silent & set(voters.values()) if line else set())
    if len(voters) - len(gone) >= needed and not (line and not gone):
        return
    names = ", ".join(sorted(gone)) or "the others"
    yield Finding(
        f"etcd has no quorum: of {len(voters)} voting members {needed} are needed, and {names} cannot be reached",
        (said, *((line.evidence,) if line else ())),
        fix=FIX,
    )


def _voters(case: Case) -> tuple[dict[str, str], Evidence]:
    """Voting members, id in hex to name; without a db the names that --initial-cluster has."""
    try:
        database = case.database
        listed = [member for member in database.cluster.members if not member.learner]
        if listed:
            found = {f"{member.id:x}": member.name or f"{member.id:x}" for member in listed}
            text = ", ".join(f"{member.name or f'{member.id:x}'} {' '.join(member.peer_urls)}" for member in listed)
            return found, database.evidence(f"voting members: {text}")
    except (EvidenceMissing, NotApplicable) as gap:
        recent_log(case.node)  # without db and log nothing can be said
        if not members(case.node):
            raise EvidenceMissing(str(gap)) from gap
    return {name: name for name in members(case.node)}, case.node.etcd.flag("initial-cluster").evidence


def _unstarted(case: Case) -> set[str]:
    try:
        listed = case.database.cluster.members
    except (EvidenceMissing, NotApplicable):
        return set()
    return {f"{member.id:x}" for member in listed if not member.name and not member.learner}


def _misplaced(case: Case) -> set[str]:
    """Other members at an address that leads nowhere from here: loopback, one of this host's own, a NAT machine's."""
    try:
        voters = [member for member in case.database.cluster.members if not member.learner]
        own = case.data.log.member_id
        local = case.node.addresses
    except (EvidenceMissing, NotApplicable):
        return set()
    found = set()
    for member in voters:
        addresses = url_addresses(",".join(member.peer_urls))
        nowhere = all(local.has(address) or str(address) in NAT for address in addresses)
        if member.id != own and addresses and nowhere:
            found.add(member.name or f"{member.id:x}")
    return found


def _unreachable(case: Case) -> tuple[set[str], Line | None]:
    """Members that the log could not reach, by name, and the line that says that there is no leader."""
    try:
        lines = recent_log(case.node)
    except EvidenceMissing:
        return set(), None
    led = max((place for place, line in enumerate(lines) if LED.search(line.text)), default=-1)
    after = lines[led + 1 :]
    leaderless = [line for line in after if LEADERLESS.search(line.text)]
    if len(leaderless) < ELECTIONS:
        return set(), None
    failing = [line for line in after if FAILING.search(line.text)]
    return _named(case, failing), leaderless[-1]


def _named(case: Case, failing: list[Line]) -> set[str]:
    try:
        listed = case.database.cluster.members
    except (EvidenceMissing, NotApplicable):
        return set()
    ids = {group for line in failing for match in PEER.finditer(line.text) for group in match.groups() if group}
    hosts = {match[1] for line in failing for match in DIALLED.finditer(line.text)}
    return {
        member.name or f"{member.id:x}"
        for member in listed
        if f"{member.id:x}" in ids or hosts & {str(address) for address in url_addresses(",".join(member.peer_urls))}
    }
