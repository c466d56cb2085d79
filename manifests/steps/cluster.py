"""Steps that wait for the API server and change objects through it."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from datetime import UTC, datetime

from drtool.core.errors import Refused
from drtool.core.plan import Ahead
from drtool.host.machine import Host, lost
from manifests.api import Api, ApiRefused, ApiSilent, identity, serves
from manifests.editing import changed, edit, rewritten

ATTEMPTS = 5


def replaced(text: str, old: str, new: str) -> str:
    """`old` as a whole host part: 192.0.2.1 is not found in 192.0.2.11, nor cp-1 in cp-10, nor ::1 in ::1:2."""
    return whole(old).sub(lambda _: new, text)


def whole(host: str) -> re.Pattern[str]:
    """Where a text names this very host, or HOST:PORT; what follows an IPv6 address after a colon is part of it."""
    after = r"[\w:-]" if ":" in host else r"[\w-]"
    return re.compile(rf"(?<![\w.:-]){re.escape(host)}(?!{after}|\.\w)")


@dataclass(frozen=True, slots=True)
class WaitForApiserver:
    """/readyz of one API server, by an address that its certificate must be valid for."""

    server: str
    seconds: float = 240.0

    def describe(self) -> str:
        return f"wait until the API server at {self.server} is ready (at most {self.seconds:.0f} s)"

    def apply(self, host: Host) -> None:
        api = Api(self.server, identity(host))
        hint = "crictl ps -a; the last lines of /var/log/pods/kube-system_kube-apiserver-*/*/*.log"

        def missing() -> str:
            problem = api.ready()
            return f"{problem}; {host.newest('kube-apiserver')}" if problem else ""

        host.wait(missing, self.seconds, f"the API server at {self.server} is not ready", hint)

    def revert(self, host: Host) -> None:
        """Waiting left nothing."""


@dataclass(frozen=True, slots=True)
class RewriteConfigMap:
    """A host name or address replaced in every YAML text of one ConfigMap; an absent ConfigMap is left absent."""

    server: str
    namespace: str
    name: str
    old: str
    new: str

    def describe(self) -> str:
        return f"in the ConfigMap {self.namespace}/{self.name}: {self.old} -> {self.new}"

    def apply(self, host: Host) -> None:
        api = Api(self.server, identity(host))
        for attempt in range(ATTEMPTS):
            found = api.get(self._path)
            data: dict[str, str] = (found or {}).get("data") or {}
            wanted = {key: self._rewritten(key, text) for key, text in data.items()}
            if found is None or wanted == data:
                if host.remembered(self._memory) is None:
                    host.remember(self._left, b"")
                return
            host.remember(self._memory, json.dumps(data).encode())
            try:
                api.put(self._path, {**found, "data": wanted})
            except ApiRefused as refused:
                if refused.status != 409 or attempt == ATTEMPTS - 1:
                    raise
            else:
                return

    def revert(self, host: Host) -> None:
        memory = host.remembered(self._memory)
        if memory is None:
            return
        api = Api(self.server, identity(host))
        found = api.get(self._path)
        if found is None:
            return
        before: dict[str, str] = json.loads(memory)
        data: dict[str, str] = found.get("data") or {}
        for key, text in before.items():
            ours = self._rewritten(key, text)
            if ours == text:
                continue  # not ours: cluster-info's signatures, say, which the controller-manager makes anew
            if data.get(key) == ours:
                data[key] = text
            elif data.get(key) != text:
                raise Refused(f"ConfigMap {self.namespace}/{self.name}: {key} was changed by someone else meanwhile")
        api.put(self._path, {**found, "data": data})

    def foresee(self, host: Host, ahead: Ahead, complete: bool) -> None:  # noqa: ARG002 - a step's signature
        if complete and host.remembered(self._memory) is None and host.remembered(self._left) is None:
            raise lost(host.memory(self._memory))

    @property
    def _left(self) -> str:
        """Made where there was nothing to change."""
        return f"left-{self._memory}"

    @property
    def _path(self) -> str:
        return f"/api/v1/namespaces/{self.namespace}/configmaps/{self.name}"

    @property
    def _memory(self) -> str:
        return f"{self.namespace}-{self.name}-{self.new.replace('/', '_').replace(':', '_')}.json"

    def _rewritten(self, key: str, text: str) -> str:
        if self.old not in text or not key.endswith((".conf", "kubeconfig", "Configuration", ".yaml")):
            return text
        data, place = text.encode(), f"ConfigMap {self.namespace}/{self.name}, {key}"
        edits = rewritten(place, data, lambda _, value: replaced(value, self.old, self.new))
        return changed(data, edit(place, data, edits)).decode()


@dataclass(frozen=True, slots=True)
class RestartDaemonSet:
    """As `kubectl rollout restart` does it: an annotation of the Pods' template. An absent one is left absent."""

    server: str
    namespace: str
    name: str
    why: str

    def describe(self) -> str:
        return f"restart the Pods of DaemonSet {self.namespace}/{self.name}: {self.why}"

    def apply(self, host: Host) -> None:
        now = datetime.fromtimestamp(host.clock.now(), UTC).isoformat(timespec="seconds")
        mark = {"kubectl.kubernetes.io/restartedAt": now}
        patch = {"spec": {"template": {"metadata": {"annotations": mark}}}}
        Api(self.server, identity(host)).merge(
            f"/apis/apps/v1/namespaces/{self.namespace}/daemonsets/{self.name}", patch
        )

    def revert(self, host: Host) -> None:
        """What they read was put back before this; restarted once more where the API still answers."""
        try:
            self.apply(host)
        except (ApiSilent, ApiRefused):
            return


@dataclass(frozen=True, slots=True)
class WaitForName:
    """An API server that serves a certificate valid for a name: it takes a new file up by itself within a minute."""

    server: str
    name: str
    seconds: float = 180.0

    def describe(self) -> str:
        return f"wait until the API server at {self.server} serves a certificate for {self.name}"

    def apply(self, host: Host) -> None:
        ca = identity(host).ca
        what = f"the API server at {self.server} does not serve a certificate for {self.name}"
        host.wait(
            lambda: serves(self.server, self.name, ca), self.seconds, what, "restart it: crictl stop its container"
        )

    def revert(self, host: Host) -> None:
        """Waiting left nothing."""


@dataclass(frozen=True, slots=True)
class ProveNames:
    """Both names of the endpoint answer, each with a certificate that is valid for it."""

    servers: tuple[str, ...]
    seconds: float = 60.0

    def describe(self) -> str:
        return f"prove that {' and '.join(self.servers)} both answer"

    def apply(self, host: Host) -> None:
        who = identity(host)
        for server in self.servers:
            host.wait(Api(server, who).ready, self.seconds, f"the endpoint {server} does not answer")

    def revert(self, host: Host) -> None:
        """Looking left nothing."""
