"""A headless Chromium that is told what to do over its debugging pipe; for pages that must render and fetch nothing."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO

NAMES = ("chromium", "chromium-browser", "google-chrome")
FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-dev-shm-usage",
    "--disable-background-networking",
    "--remote-debugging-pipe",
)


def program() -> str:
    """ "" where there is none."""
    return next((found for name in NAMES if (found := shutil.which(name))), "")


@dataclass
class Page:
    """One tab. `requests` are the URLs that it asked for since `open`."""

    _to: BinaryIO
    _from: BinaryIO
    _session: str = ""
    _number: int = 0
    requests: list[str] = field(default_factory=list)

    def call(self, method: str, **parameters: Any) -> dict[str, Any]:
        """A command of the DevTools protocol, and its result."""
        self._number += 1
        message = {"id": self._number, "method": method, "params": parameters}
        if self._session:
            message["sessionId"] = self._session
        self._to.write(json.dumps(message).encode() + b"\0")
        self._to.flush()
        while True:
            answer = self._message()
            if answer.get("id") == self._number:
                assert "error" not in answer, answer
                result: dict[str, Any] = answer["result"]
                return result

    def _message(self) -> dict[str, Any]:
        data = bytearray()
        while (byte := self._from.read(1)) != b"\0":
            assert byte, "Chromium ended"
            data += byte
        message: dict[str, Any] = json.loads(data)
        if message.get("method") == "Network.requestWillBeSent":
            self.requests.append(message["params"]["request"]["url"])
        return message

    def open(self, url: str) -> None:
        """Returns once it is loaded."""
        target = self.call("Target.createTarget", url="about:blank")["targetId"]
        self._session = self.call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"]
        self.call("Network.enable")
        self.call("Page.enable")
        self.call("Page.navigate", url=url)
        while self._message().get("method") != "Page.loadEventFired":
            pass

    def value(self, expression: str) -> Any:
        return self.call("Runtime.evaluate", expression=expression, returnByValue=True)["result"].get("value")


@contextmanager
def page(profile: Path) -> Iterator[Page]:
    """Ended by its process id."""
    commands, to = os.pipe()
    answers, back = os.pipe()
    words = f'exec "$@" 3<&{commands} 4>&{back}'
    process = subprocess.Popen(
        ["bash", "-c", words, "chromium", program(), *FLAGS, f"--user-data-dir={profile}"],
        pass_fds=(commands, back),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(commands)
    os.close(back)
    try:
        with os.fdopen(to, "wb") as writing, os.fdopen(answers, "rb") as reading:
            one = Page(writing, reading)
            yield one
            one._session = ""
            one.call("Browser.close")
    finally:
        process.terminate()
        process.wait(30)
