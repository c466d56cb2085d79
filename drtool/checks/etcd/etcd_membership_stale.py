"""etcd's membership must be that of the control planes which are there.

A member that died and was never removed counts for the quorum; one that was added and never started, too. A member
that was removed exits with `the member has been permanently removed from the cluster`; one whose db is another's or
has lost it, with `member unknown`. Removed members that are listed again come from 3.5.0 to 3.5.2. One learner while
a node joins is normal; hosts of an external etcd are no Kubernetes nodes.

Fix: `etcdctl member remove` the dead one; for this node, move its data aside, remove it, add it and let it join anew.
"""

from collections.abc import Iterable, Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import has_data, recent_log, said
from manifests.identity import members, own_places, url_addresses
from manifests.layout import Layout
from snapshots.cluster import Member
from snapshots.facts import Database

SEVERITY = Severity.ERROR
EXPLAINS = ("etcd-quorum-impossible", "container-exited", "component-not-ready")
REFUSED = r"member count is unequal|has been permanently removed from the cluster|member unknown"


def find(case: Case) -> Iterator[Finding]:
    yield from _logged(case)
    yield from _bootstrapping(case)
    database = case.database
    known = database.cluster.members
    if not known:
        raise EvidenceMissing(f"{database.path} lists no members")
    yield from _own(case, database)
    yield from _zombies(database)
    yield from _unstarted(database)
    yield from _dead(case, database)
    yield from _strangers(case, database)


def _logged(case: Case) -> Iterator[Finding]:
    try:
        line = said(recent_log(case.node), REFUSED)
    except EvidenceMissing:
        return
    if line:
        etcd = case.node.etcd
        flag = etcd.flag("initial-cluster").evidence if etcd.has("initial-cluster") else etcd.image_evidence
        yield Finding("etcd's members do not take this one for a member", (line.evidence, flag), Severity.CRITICAL)


def _bootstrapping(case: Case) -> Iterator[Finding]:
    """A member that is yet to join must list exactly those that its peers know."""
    etcd = case.node.components.get("etcd")
    try:
        if etcd is None or has_data(case.node) or etcd.value("initial-cluster-state") != "existing":
            return
    except EvidenceMissing:
        return
    listed = {address for addresses in members(case.node).values() for address in addresses}
    for node, stored in case.peers():
        known = stored.database.cluster.members
        addresses = {address for member in known for address in url_addresses(",".join(member.peer_urls))}
        if addresses != listed and listed & addresses:
            yield Finding(
                f"--initial-cluster lists other members than {node.name}'s etcd has",
                (etcd.flag("initial-cluster").evidence, stored.database.evidence(_names(known))),
                Severity.CRITICAL,
            )
            return


def _member_id(case: Case) -> int:
    """This member's id as its log has it; 0 where there is none to read."""
    try:
        return case.data.log.member_id
    except (EvidenceMissing, NotApplicable):
        return 0


def _own(case: Case, database: Database) -> Iterator[Finding]:
    try:
        log = case.data.log
    except (EvidenceMissing, NotApplicable):
        return
    known = {member.id: member for member in database.cluster.members}
    own = known.get(log.member_id)
    if log.member_id and own is None:
        gone = log.member_id in database.cluster.removed
        yield Finding(
            f"This member ({log.member_id:x}) " + ("was removed from its cluster" if gone else "is not in its own db"),
            (
                Evidence(case.data.wal_path, None, f"member {log.member_id:x}"),
                database.evidence(_names(known.values())),
            ),
            Severity.CRITICAL,
        )
    elif own is not None:
        yield from _moved(case, database, own)


def _moved(case: Case, database: Database, own: Member) -> Iterator[Finding]:
    """The peer URL that the others dial, against what this member now says; etcd reads the flag only once."""
    etcd = case.node.etcd
    advertised = etcd.flag("initial-advertise-peer-urls")
    recorded, now = (set(url_addresses(urls)) for urls in (",".join(own.peer_urls), advertised.value))
    if not recorded or not now or recorded & now or any(address.is_loopback for address in recorded):
        return
    here = {place.address for place in own_places(case.node)}
    if here & recorded or not all(case.node.addresses.has(address) for address in now):
        return  # files of two generations, or an address that is gone: checks of their own
    several = len(database.cluster.members) > 1
    yield Finding(
        f"etcd's membership has this member at {', '.join(own.peer_urls)}, and it is at {advertised.value} now",
        (database.evidence(_names((own,))), advertised.evidence),
        None if several else Severity.WARNING,
    )


def _zombies(database: Database) -> Iterator[Finding]:
    for member in database.cluster.members:
        if member.id in database.cluster.removed:
            yield Finding(
                f"Member {member.name or f'{member.id:x}'} was removed, and is listed again",
                (database.evidence(_names((member,))), database.evidence(f"removed: {member.id:x}")),
                Severity.CRITICAL,
            )


def _unstarted(database: Database) -> Iterator[Finding]:
    """A member gets its name when it first starts."""
    if len(database.cluster.members) < 2:
        return
    for member in database.cluster.members:
        if not member.name and member.id not in database.cluster.removed:
            yield Finding(
                f"Member {member.id:x} ({', '.join(member.peer_urls)}) was added and never started",
                (database.evidence(_names((member,))),),
                Severity.WARNING if member.learner else None,
            )


def _dead(case: Case, database: Database) -> Iterator[Finding]:
    """kubeadm calls a member by its node: where that holds for this one, the others must have a Node too."""
    contents = database.contents
    here = _member_id(case)
    own = case.node.etcd.value("name")
    if case.node.layout is not Layout.STACKED or not contents.whole or own not in contents.nodes:
        return
    for member in database.cluster.members:
        if member.learner or member.id == here or member.id in database.cluster.removed:
            continue
        if member.name and member.name not in contents.nodes:
            yield Finding(
                f"etcd's member {member.name} has no Node in the cluster: it is gone and was never removed",
                (database.evidence(_names((member,))), database.evidence(f"nodes: {', '.join(contents.nodes[:9])}")),
            )


def _strangers(case: Case, database: Database) -> Iterator[Finding]:
    """Control planes judged together with this one whose etcd is no member of the same cluster."""
    known = {a for member in database.cluster.members for a in url_addresses(",".join(member.peer_urls))}
    for node, stored in case.peers():
        addresses = set(url_addresses(node.etcd.value("initial-advertise-peer-urls")))
        newer = stored.database.cluster.consistent_index > database.cluster.consistent_index
        if stored.member and addresses and not addresses & known and not newer:
            yield Finding(
                f"{node.name} runs an etcd that is no member here",
                (database.evidence(_names(database.cluster.members)), node.etcd.flag("name").evidence),
            )


def _names(listed: Iterable[Member]) -> str:
    def text(member: Member) -> str:
        kind = " (learner)" if member.learner else ""
        return f"{member.name or f'{member.id:x}'} {' '.join(member.peer_urls)}{kind}"

    return "members: " + ", ".join(map(text, listed))
