"""Certificates that ran out on a running node, and a copy among the manifests, are put right; undone once as well."""

from __future__ import annotations

from tests.e2e.lab import causes, healthy, kubectl, nodes, on, ready, run, told

ADDRESS = "198.51.100.11"
EXPIRE = """
from datetime import timedelta
from pathlib import Path
from cryptography import x509
from manifests.pki.issuing import Issued, issue, load_private
pki = Path("/etc/kubernetes/pki")
def load(name):
    certificate, key = ((pki / f"{name}.{half}").read_bytes() for half in ("crt", "key"))
    return x509.load_pem_x509_certificate(certificate), load_private(key)
authority = Issued(*load("etcd/ca"))
start, second = authority.certificate.not_valid_before_utc + timedelta(minutes=5), timedelta(seconds=1)
for name in ("etcd/server", "apiserver-etcd-client"):
    was, key = load(name)
    common = was.subject.get_attributes_for_oid(x509.NameOID.COMMON_NAME)[0].value
    san = x509.SubjectAlternativeName
    names = [str(n.value) for e in was.extensions if isinstance(e.value, san) for n in e.value]
    made = issue(authority, common, ["serverAuth", "clientAuth"], start, key, names=names, life=second)
    (pki / f"{name}.crt").write_bytes(made.certificate_pem)
"""


def main() -> None:
    import sys

    with nodes(1):
        on(
            1,
            "cp",
            "/etc/kubernetes/manifests/kube-scheduler.yaml",
            "/etc/kubernetes/manifests/kube-scheduler.yaml.bak",
        )
        on(1, sys.executable, "-c", EXPIRE)
        from tests.e2e.lab import crictl_stop

        crictl_stop(1, "etcd", "kube-apiserver")
        found = causes(1)
        print(found)
        assert "cert-expired" in found
        assert "duplicate-static-pod" in found
        print(run(1, "fix"))
        told("fix", lambda: run(1, "fix", "--apply", "--yes"))
        ready(1, ADDRESS)
        healthy(1)
        told("undo", lambda: run(1, "undo", "--yes"))
        assert "cert-expired" in causes(1)
        told("fix again", lambda: run(1, "fix", "--apply", "--yes"))
        ready(1, ADDRESS)
        assert "before" in kubectl(1, "get", "configmap", "witness", "-o", "yaml")


if __name__ == "__main__":
    main()
