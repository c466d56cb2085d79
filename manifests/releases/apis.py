"""Which API versions a release serves no more, and the etcd image that its kubeadm sets up. Data: apis.json."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources
from typing import Any, NamedTuple


class Removal(NamedTuple):
    """`minor` is the first one that does not serve it; `instead` is GROUP/VERSION, "" where nothing replaces it."""

    minor: int
    group: str
    version: str
    kind: str
    instead: str

    @property
    def api_version(self) -> str:
        return f"{self.group}/{self.version}" if self.group else self.version


def removed(after: int, upto: int) -> tuple[Removal, ...]:
    """What is served in 1.`after` and no more in 1.`upto`."""
    return tuple(found for row in _data()["removed"] if after < (found := Removal(*row)).minor <= upto)


def etcd_image(minor: int) -> str:
    """The tag, as `3.6.8-0`; "" for a minor that drtool does not know."""
    return str(_data()["etcd"].get(f"1.{minor}", ""))


def newest_minor() -> int:
    return max(int(name.partition(".")[2]) for name in _data()["etcd"])


@cache
def _data() -> dict[str, Any]:
    found: dict[str, Any] = json.loads(resources.files(__package__).joinpath("apis.json").read_bytes())
    return found
