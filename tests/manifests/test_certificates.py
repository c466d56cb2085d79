"""PEM as Go reads it, and what a certificate is for."""

from __future__ import annotations

import random
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address

import pytest
from cryptography.hazmat.primitives.serialization import Encoding
from hypothesis import given
from hypothesis import strategies as st

from manifests.pki.certificates import Certificate, blocks, certificate_of, read_pem, utc, withheld_block
from manifests.pki.issuing import Issued, issue, issue_authority, new_key

NOW = datetime(2026, 11, 30, tzinfo=UTC)
ONE = new_key("ECDSA-P256")
CA = issue_authority("kubernetes", NOW, ONE)
OTHER = issue_authority("kubernetes", NOW, new_key("ECDSA-P256"))
NAMES = ("cp-1", "*.example.org", "192.0.2.1", "2001:db8::1")
LEAF = issue(CA, "kube-apiserver", ("serverAuth",), NOW, new_key("RSA-2048"), ("system:masters",), NAMES)


def certificate(issued: Issued) -> Certificate:
    return read_pem("/x.crt", issued.certificate_pem).certificates[0]


def test_names_dates_and_key() -> None:
    leaf = certificate(LEAF)
    assert (leaf.common_name, leaf.organizations, leaf.issuer) == ("kube-apiserver", ("system:masters",), "kubernetes")
    assert ip_address("192.0.2.1") in leaf.addresses
    assert leaf.not_before <= NOW < leaf.not_after
    assert leaf.public_key == read_pem("/x.key", LEAF.key_pem).private_keys[0]
    assert certificate(CA).is_ca
    assert not leaf.is_ca
    assert certificate_of("tls://x", b"no der") is None


@pytest.mark.parametrize(
    ("name", "covered"),
    [
        ("cp-1", True),
        ("CP-1.", True),
        ("192.0.2.1", True),
        ("[2001:db8::1]", True),
        ("2001:db8:0:0::1", True),
        ("a.example.org", True),
        ("a.b.example.org", False),
        ("example.org", False),
        ("kube-apiserver", False),
        ("192.0.2.2", False),
    ],
)
def test_a_certificate_covers_names_by_gos_rules(name: str, covered: bool) -> None:
    assert certificate(LEAF).covers(name) is covered


def test_an_issuer_is_known_by_its_key_not_its_name() -> None:
    assert certificate(LEAF).issued_by(certificate(CA))
    assert not certificate(LEAF).issued_by(certificate(OTHER))
    rsa = issue_authority("etcd-ca", NOW, new_key("RSA-2048"))
    assert certificate(issue(rsa, "a", ("clientAuth",), NOW, ONE)).issued_by(certificate(rsa))


def test_text_around_blocks_and_crlf_are_fine() -> None:
    data = b"Certificate:\r\n  Data\r\n" + LEAF.certificate_pem.replace(b"\n", b"\r\n") + CA.certificate_pem
    pem = read_pem("/bundle.crt", data)
    assert [found.common_name for found in pem.certificates] == ["kube-apiserver", "kubernetes"]
    assert pem.certificates[0].line == 3
    assert not pem.problem


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (b"", "the file is empty"),
        (b" \n", "the file is empty"),
        (b"hello", "no PEM block in it"),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", "the CERTIFICATE block at line 1"),
        (
            b"-----BEGIN RSA PRIVATE KEY-----\n!!\n-----END RSA PRIVATE KEY-----\n",
            "the RSA PRIVATE KEY block at line 1",
        ),
        (
            b"-----BEGIN ENCRYPTED PRIVATE KEY-----\nAAAA\n-----END ENCRYPTED PRIVATE KEY-----\n",
            "the key is encrypted",
        ),
    ],
)
def test_what_cannot_be_read_is_said(data: bytes, problem: str) -> None:
    assert problem in read_pem("/x.pem", data).problem


@pytest.mark.parametrize("issued", [CA, LEAF])
def test_a_withheld_key_tells_what_the_key_told(issued: Issued) -> None:
    before = read_pem("/x.key", issued.key_pem)
    after = read_pem("/x.key", withheld_block("RSA PRIVATE KEY", before))
    assert after.private_keys == before.private_keys
    broken = read_pem("/x.key", b"-----BEGIN RSA PRIVATE KEY-----\nAAAA\n-----END RSA PRIVATE KEY-----\n")
    assert read_pem("/x.key", withheld_block("RSA PRIVATE KEY", broken)) == broken


def test_a_moment_is_written_in_utc() -> None:
    assert utc(datetime(2026, 11, 30, 12, tzinfo=UTC) + timedelta(seconds=1)) == "2026-11-30T12:00:01Z"


def test_blocks_that_never_end_are_no_blocks_however_many() -> None:
    data = b"-----BEGIN A-----\n" * 50_000 + LEAF.certificate_pem
    assert [found.common_name for found in read_pem("/x", data).certificates] == ["kube-apiserver"]
    assert [block.label for block in blocks(b"-----BEGIN A-----\n-----BEGIN B-----\n-----END B-----")] == ["B"]


@given(st.binary(max_size=400))
def test_any_bytes_are_a_pem_or_say_what_is_wrong(data: bytes) -> None:
    pem = read_pem("/x", data)
    assert pem.problem or pem.certificates or pem.private_keys or pem.public_keys


@pytest.mark.filterwarnings(
    "ignore::cryptography.utils.CryptographyDeprecationWarning"
)  # drtool's own, undone by pytest
def test_a_damaged_certificate_never_raises() -> None:
    """Each byte of the DER in turn, so that every field is met, a few names of the subject among them."""
    der = LEAF.certificate.public_bytes(Encoding.DER)
    chance, refused = random.Random(1), 0  # noqa: S311 - to be repeated
    for at in range(len(der)):
        for value in (0, 0x7F, 0xFF, der[at] ^ 1, chance.randrange(256)):
            found = certificate_of("/x", der[:at] + bytes((value,)) + der[at + 1 :])
            if found is None:
                refused += 1
                continue
            _ = found.subject, found.names(), found.public_key, found.is_ca, found.fingerprint, found.subject_key_id
            _ = found.organizations, found.issuer, found.authority_key_id, found.common_name, found.evidence
            found.issued_by(certificate(CA))
    assert refused
