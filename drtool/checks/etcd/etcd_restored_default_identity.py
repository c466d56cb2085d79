"""A restored member must have its own name and an address that others can dial.

`snapshot restore` without --name and --initial-cluster makes a member `default` at http://localhost:2380. Alone it
can live with that. As soon as other control planes exist or are to join, they are told to dial their own localhost,
and `Waiting for the new etcd member to join the cluster` times out.

Fix: `etcdctl member update ID --peer-urls=https://ADDRESS:2380`, or restore again with this node's name and URLs.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.report import Evidence, Finding, Severity
from manifests.identity import endpoint, members
from manifests.kubeconfig import split_url
from manifests.network.addresses import address_of
from snapshots.cluster import Member

SEVERITY = Severity.ERROR
EXPLAINS = ("etcd-membership-stale", "etcd-quorum-impossible")


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    database = case.database
    for member in database.cluster.members:
        if not _local_only(member):
            continue
        advertised = etcd.flag("initial-advertise-peer-urls")
        if {url.strip() for url in advertised.value.split(",")} == set(member.peer_urls):
            continue  # a scratch member that is meant to be local
        several = _several(case)
        yield Finding(
            f"etcd's member {member.name or f'{member.id:x}'} is known at {', '.join(member.peer_urls)}, "
            "where no other node reaches it",
            (database.evidence(f"member {member.name} {', '.join(member.peer_urls)}"), advertised.evidence, *several),
            None if several else Severity.WARNING,
        )


def _local_only(member: Member) -> bool:
    hosts = [split_url(url)[0] for url in member.peer_urls]
    return bool(hosts) and all(host == "localhost" or getattr(address_of(host), "is_loopback", False) for host in hosts)


def _several(case: Case) -> tuple[Evidence, ...]:
    """What says that this cluster has, or is to have, more than one control plane."""
    database = case.database
    if len(database.cluster.members) > 1:
        return (database.evidence(f"{len(database.cluster.members)} members"),)
    if len(members(case.node)) > 1:
        return (case.node.etcd.flag("initial-cluster").evidence,)
    if endpoint(case.node):
        return (case.node.cluster_configuration.evidence("controlPlaneEndpoint"),)
    if any(node.layout.control_plane for node in case.others):
        return (Evidence("/etc/kubernetes", None, f"{len(case.others)} further nodes"),)
    return ()
