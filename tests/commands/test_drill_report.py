"""The HTML report in a real browser: it renders, fetches nothing, and prints."""

from __future__ import annotations

import base64
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import msgspec
import pytest

from drtool.commands.drill import Drill, Phase
from drtool.commands.drill_report import html
from tests.browser import Page, page, program

HOSTILE = '<img src="http://192.0.2.1/x.png"><script src="https://192.0.2.1/x.js"></script>'
FOUND = Drill(
    backup="20261130T073003Z-48213-43fbd48b",
    cluster="43fbd48b1a2b3c4d",
    at=datetime(2026, 11, 30, 8, tzinfo=UTC),
    good=True,
    failed="",
    rpo=1800.0,
    rto=12.5,
    phases=(Phase("fetch, open, write", 4.2), Phase("boot etcd", 1.1), Phase("boot API server", 7.2)),
    proven=("etcd boots on the restored data and serves",),
    not_proven=(HOSTILE,),
    etcd="3.7.3",
    kubernetes="v1.37.2",
)


@pytest.fixture(scope="module")
def shown(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Page]:
    if not program():
        pytest.skip("no Chromium on PATH")
    place = tmp_path_factory.mktemp("page")
    past = [
        msgspec.structs.replace(FOUND, at=FOUND.at - timedelta(days=7 * week), good=week != 3) for week in (3, 2, 1)
    ]
    (place / "report.html").write_text(html(FOUND, past))
    with page(place / "profile") as one:
        one.open((place / "report.html").as_uri())
        yield one


def test_it_renders(shown: Page) -> None:
    assert shown.value("document.title") == f"Drill of backup {FOUND.backup}"
    assert shown.value("document.querySelector('.verdict').innerText") == "PROVEN: it comes back"
    assert shown.value("document.compatMode") == "CSS1Compat"
    sizes = shown.value("[...document.querySelectorAll('svg rect')].map(r => r.getBoundingClientRect().width)")
    assert len(sizes) == len(FOUND.phases) + 4
    assert all(size > 0 for size in sizes)
    within = "[...document.querySelectorAll('svg text')].every(t => t.getBBox().x + t.getBBox().width <= 720)"
    assert shown.value(within), "a phase's words run out of the picture"


def test_it_fetches_nothing(shown: Page) -> None:
    """What comes from a backup is text, even where it looks like a tag."""
    assert [url for url in shown.requests if not url.startswith("file://")] == []
    assert len(shown.requests) == 1
    assert shown.value("document.querySelectorAll('img, script, link, iframe, object').length") == 0
    assert HOSTILE in shown.value("document.body.innerText")


def test_it_prints(shown: Page) -> None:
    """The style for paper takes hold, and it fits on the width of a page."""
    screen = shown.value("getComputedStyle(document.body).maxWidth")
    shown.call("Emulation.setEmulatedMedia", media="print")
    assert shown.value("getComputedStyle(document.body).maxWidth") == "none" != screen
    assert shown.value("getComputedStyle(document.querySelector('h2')).breakAfter") == "avoid"
    pdf = base64.b64decode(shown.call("Page.printToPDF")["data"])
    assert pdf.startswith(b"%PDF-")
    shown.call("Emulation.setEmulatedMedia", media="")
