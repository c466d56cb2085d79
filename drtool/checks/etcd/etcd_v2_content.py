"""etcd 3.6 refuses a data directory that still holds keys of the v2 API.

Its old store lives on in the .snap files. Membership and the cluster's version in it are etcd's own and fine;
anything else makes 3.6 exit: `detected disallowed custom content in v2store`. 3.5 and older ignore it without
--enable-v2. 3.7 no longer reads these files and drops what is in them; the supported way there leads through 3.6.

Fix: go back to 3.5, remove the keys with the v2 API (--enable-v2), let a new .snap be written, upgrade then.
"""

from collections.abc import Iterator

from drtool.checks import Case
from drtool.core.check import EvidenceMissing, NotApplicable
from drtool.core.report import Evidence, Finding, Severity
from manifests.etcd import last_words

SEVERITY = Severity.CRITICAL
EXPLAINS = ("image-inconsistent", "container-exited", "component-not-ready")
REFUSED = r"detected disallowed (?:custom content in v2store|v2 WAL)"


def find(case: Case) -> Iterator[Finding]:
    etcd = case.node.etcd
    line = last_words(case.node, REFUSED)
    keys = _keys(case, logged=line is not None)
    if not keys and line is None:
        return
    if etcd.version is None:
        raise EvidenceMissing(f"{etcd.container.image} does not say which version of etcd it is")
    newer = etcd.version >= (3, 6, 0)
    held = f"{len(keys)} keys of the v2 API, such as {keys[0]}" if keys else "keys of the v2 API"
    yield Finding(
        f"etcd's data still holds {held}, which etcd 3.6 refuses and 3.7 drops",
        (etcd.image_evidence, *_snap(case, keys), *((line,) if line else ())),
        severity=None if newer else Severity.WARNING,
    )


def _keys(case: Case, logged: bool) -> tuple[str, ...]:
    try:
        found = case.data.v2
    except (EvidenceMissing, NotApplicable):
        if logged:
            return ()
        raise
    if found is None and not logged:
        raise NotApplicable("the member has no .snap file yet")
    return found or ()


def _snap(case: Case, keys: tuple[str, ...]) -> tuple[Evidence, ...]:
    if not keys:
        return ()
    term, index = max(case.data.snaps, key=lambda snap: snap[1])
    return (Evidence(f"{case.data.path}/member/snap/{term:016x}-{index:016x}.snap", None, ", ".join(keys[:5])),)
