"""Rebuilds the JSON files beside this module.

    python -m manifests.releases.rebuild MODULES RELEASES

MODULES is Go's module cache (`go env GOMODCACHE`) after `go mod download` of k8s.io/kubernetes@v1.N.P and of its
staging modules @v0.N.P, one patch release a minor, and of go.etcd.io/etcd/server/v3. RELEASES is a directory with
kubernetes.json and etcd.json: what the programs' own `--help` lists, against which the reading of the sources is held.
`--help` hides deprecated flags, which still work: for each release the union of both is written.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from functools import cache
from pathlib import Path
from typing import Any

from manifests.releases import go_source

HERE = Path(__file__).parent
ByVersion = dict[int, tuple[Any, ...]]  # minor -> what is said of a name there beside that it exists
MINORS = range(20, 38)
SUPPORTED = 24  # the minors before it say when a flag went that 1.24 no longer has
ETCD_LINES = range(4, 8)
KUBERNETES = "kubernetes"

# Where each program's flags are registered: module and glob, relative to the module's root.
COMMON = (
    ("component-base", "metrics/options.go"),
    ("component-base", "logs/options.go"),
    ("component-base", "logs/config.go"),
    ("component-base", "logs/logs.go"),
    ("component-base", "logs/api/v1/options.go"),
    ("component-base", "version/verflag/verflag.go"),
    ("component-base", "cli/globalflag/globalflags.go"),
    ("component-base", "compatibility/registry.go"),
    ("component-base", "featuregate/*.go"),
    ("apiserver", "pkg/util/version/registry.go"),
)
SERVING = (
    ("apiserver", "pkg/server/options/serving*.go"),
    ("apiserver", "pkg/server/options/deprecated_insecure_serving.go"),
    ("apiserver", "pkg/server/options/authentication.go"),
    ("apiserver", "pkg/server/options/authorization.go"),
    ("component-base", "config/options/leaderelectionconfig.go"),
)
FLAGS = {
    "kube-apiserver": (
        *COMMON,
        (KUBERNETES, "cmd/kube-apiserver/app/options/*.go"),
        (KUBERNETES, "plugin/pkg/admission/defaulttolerationseconds/admission.go"),
        (KUBERNETES, "pkg/controlplane/apiserver/options/options.go"),
        (KUBERNETES, "pkg/kubeapiserver/options/*.go"),
        ("apiserver", "pkg/server/options/*.go"),
    ),
    "kube-controller-manager": (
        *COMMON,
        *SERVING,
        (KUBERNETES, "cmd/kube-controller-manager/app/options/*.go"),
        ("controller-manager", "options/*.go"),
        ("controller-manager", "pkg/leadermigration/options/options.go"),
        ("cloud-provider", "options/kubecloudshared.go"),
        ("cloud-provider", "options/cloudprovider.go"),
        ("cloud-provider", "options/servicecontroller.go"),
    ),
    "kube-scheduler": (*COMMON, *SERVING, (KUBERNETES, "cmd/kube-scheduler/app/options/*.go")),
    "kubelet": (
        *COMMON[1:],
        (KUBERNETES, "cmd/kubelet/app/options/*.go"),
        (KUBERNETES, "pkg/kubelet/config/flags.go"),
    ),
}
# What klog registers; Kubernetes 1.26 stopped passing on all but v and vmodule.
KLOG = frozenset(
    [
        "add-dir-header",
        "alsologtostderr",
        "log-backtrace-at",
        "log-dir",
        "log-file",
        "log-file-max-size",
        "logtostderr",
        "one-output",
        "skip-headers",
        "skip-log-headers",
        "stderrthreshold",
    ]
)
# Registered by code in those files that this program does not call.
NOT_CALLED = {
    "kube-apiserver": frozenset(
        [
            "authentication-kubeconfig",
            "authentication-skip-lookup",
            "authentication-tolerate-lookup-failure",
            "authorization-always-allow-paths",
            "authorization-kubeconfig",
            "kubeconfig",
        ]
    ),
    "kubelet": frozenset(["allow-metric-labels-manifest", "emulated-version", "min-compatibility-version"]),
}
GATES = (
    (KUBERNETES, "pkg/features/*.go"),
    ("apiserver", "pkg/features/kube_features.go"),
    ("apiextensions-apiserver", "pkg/features/kube_features.go"),
    ("client-go", "features/known_features.go"),
    ("component-base", "logs/kube_features.go"),
    ("component-base", "logs/api/v1/kube_features.go"),
    ("component-base", "metrics/features/kube_features.go"),
    ("component-base", "zpages/features/kube_features.go"),
    ("component-base", "featuregate/feature_gate.go"),
    ("controller-manager", "pkg/features/kube_features.go"),
)


class Sources:
    """The Go files of one minor in the module cache."""

    def __init__(self, modules: Path, minor: int) -> None:
        self.modules, self.minor = modules / "k8s.io", minor

    def root(self, module: str) -> Path | None:
        found = self.modules.glob(f"{module}@v{int(module == KUBERNETES)}.{self.minor}.*")
        return max(found, key=lambda path: int(path.name.rpartition(".")[2]), default=None)

    def read(self, places: Iterable[tuple[str, str]]) -> Iterator[str]:
        for module, pattern in places:
            root = self.root(module)
            if root is None and self.minor < SUPPORTED:
                continue
            if root is None:
                raise SystemExit(f"k8s.io/{module} of 1.{self.minor} is not in {self.modules}")
            for path in sorted(root.glob(pattern)):
                if path.stem.endswith(("_test", "_windows", "_others", "_other")):
                    continue
                if path.stem == "deprecated_insecure_serving" and self.minor >= 24:
                    continue  # since then only called by samples
                yield text(path)


@cache
def text(path: Path) -> str:
    return go_source.without_comments(path.read_text())


def flags(sources: Sources, component: str) -> tuple[set[str], dict[str, str]]:
    """The flags that are registered, and what is said of the deprecated ones."""
    names: set[str] = {"version"}
    deprecated: dict[str, str] = {}
    for source in sources.read(FLAGS[component]):
        known = go_source.constants(source)
        for expression, usage in go_source.registrations(source):
            for name in spellings(expression, known):
                names.add(name)
                if re.match(r'"DEPRECATED|"?\(?Deprecated', usage):
                    deprecated[name] = usage
        for expression, message in go_source.deprecations(source):
            deprecated |= dict.fromkeys(spellings(expression, known), message)
    if "klog.InitFlags(packageFlags)" in "".join(sources.read([("component-base", "logs/logs.go")])):
        names |= KLOG
        deprecated |= dict.fromkeys(KLOG, "")
    names -= NOT_CALLED.get(component, frozenset())
    return names, {name: message for name, message in deprecated.items() if name in names}


CONSTANTS = {"cadvisorflags.HousekeepingInterval": "housekeeping-interval"}


def spellings(expression: str, known: Mapping[str, str]) -> list[str]:
    """The names that the expression of a flag's name stands for; hyphens, since the programs accept both."""
    if literal := re.fullmatch(r'"([^"]+)"', expression):
        return [literal[1].replace("_", "-")]
    if pattern := re.fullmatch(r'fmt\.Sprintf\("(audit-%s-[^"]+)", pluginName\)', expression):
        return [pattern[1] % plugin for plugin in ("log", "webhook")]
    name = CONSTANTS.get(expression) or known.get(expression.rpartition(".")[2])
    return [name] if name else []


def gates(sources: Sources) -> dict[str, tuple[str, bool, bool]]:
    """Every feature gate of a minor: stage, default, locked."""
    files = list(sources.read(GATES))
    known = {name: value for source in files for name, value in go_source.constants(source).items()}
    found = {}
    for source in files:
        for key, specs in go_source.gates(source):
            usable = [spec for spec in specs if spec.since <= sources.minor]
            if usable:
                found[known.get(key.rpartition(".")[2], key)] = (
                    usable[-1].stage,
                    usable[-1].default,
                    usable[-1].locked,
                )
    return found


def plugins(sources: Sources) -> set[str]:
    """Every admission plugin that the API server knows, by the PluginName constant of its package."""
    (source,) = sources.read([(KUBERNETES, "pkg/kubeapiserver/options/plugins.go")])
    aliases = go_source.imports(source)
    listed = source[source.index("AllOrderedPlugins = []string{") :].split("{", 1)[1].split("\n}", 1)[0]
    names = set()
    for alias, constant in re.findall(r"(\w+)\.(\w+)", listed):
        module, _, package = aliases[alias].removeprefix("k8s.io/").partition("/")
        for text_ in sources.read([(module, f"{package}/*.go")]):
            names |= {value for name, value in go_source.constants(text_).items() if name == constant}
    return names


def kubelet_fields(sources: Sources) -> dict[str, dict[str, str]]:
    """Struct -> JSON field -> Go type, for KubeletConfiguration v1beta1 and what it holds."""
    places = [
        ("kubelet", "config/v1beta1/types.go"),
        ("component-base", "logs/api/v1/types.go"),
        ("component-base", "tracing/api/v1/types.go"),
        ("component-base", "config/v1alpha1/types.go"),
    ]
    return {name: fields for source in sources.read(places) for name, fields in go_source.structs(source)}


def pod_fields(sources: Sources) -> dict[str, str]:
    """STRUCT.FIELD -> Go type, of a v1 Pod and all that it holds; names of types that are strings are resolved."""
    files = list(sources.read([("api", "core/v1/types.go"), ("apimachinery", "pkg/apis/meta/v1/types.go")]))
    strings = {name for source in files for name in go_source.string_types(source)} | {"UID"}
    fields: dict[str, str] = {}
    for source in files:
        for struct, found in go_source.structs(source):
            for name, kind in found.items():
                bare = re.sub(r"(?:v1|metav1|types)\.(?!Time|Duration)", "", kind).replace("*", "")
                bare = bare.replace("ResourceList", "map[string]resource.Quantity")
                words = re.sub(r"\w+", lambda word: "string" if word[0] in strings else word[0], bare)
                fields[f"{struct}.{':' + words if name.startswith(':') else name}"] = words
    return reachable_from("Pod", fields)


def reachable_from(root: str, fields: Mapping[str, str]) -> dict[str, str]:
    structs, wanted = {root}, {root}
    while wanted:
        kinds = [kind for name, kind in fields.items() if name.partition(".")[0] in wanted]
        names = {part for kind in kinds for part in re.findall(r"\w+", kind)}
        wanted = {n for n in names if any(f.startswith(n + ".") for f in fields)} - structs
        structs |= wanted
    return {name: kind for name, kind in sorted(fields.items()) if name.partition(".")[0] in structs}


def etcd_flags(modules: Path, line: int) -> set[str]:
    """Over every patch release of a line in the module cache: a flag that came with a patch is known."""
    names: set[str] = set()
    for root in (modules / "go.etcd.io/etcd/server").glob(f"v3@v3.{line}.*"):
        main, embed = text(root / "etcdmain/config.go"), text(root / "embed/config.go")
        known = go_source.constants(main + embed)
        for source in (main, embed):
            for expression, _ in go_source.registrations(source):
                names |= set(spellings(expression, known))
        names |= set(known.values()) & {"feature-gates"}
        ignored = main[main.index("ignored = []string{") :]
        names |= set(re.findall(r'"([\w-]+)"', ignored[: ignored.index("}")]))
    return names | {"help", "h", "version"}


def runs(by_version: ByVersion) -> list[list[Any]]:
    """[first, last, *value] for every stretch of versions over which an entry stays the same."""
    found: list[list[Any]] = []
    for version, value in sorted(by_version.items()):
        if found and found[-1][1] == version - 1 and found[-1][2:] == list(value):
            found[-1][1] = version
        else:
            found.append([version, version, *value])
    return found


def rebuild(modules: Path, releases: Path) -> dict[str, object]:
    """File name -> content of every data file."""
    helped = json.loads((releases / "kubernetes.json").read_text())
    flag_table: dict[str, dict[str, ByVersion]] = {component: {} for component in FLAGS}
    gate_table: dict[str, ByVersion] = {}
    plugin_table: dict[str, ByVersion] = {}
    field_table: dict[str, ByVersion] = {}
    for minor in MINORS:
        sources, told = Sources(modules, minor), helped.get(f"1.{minor}")
        for component, entries in flag_table.items():
            names, deprecated = flags(sources, component)
            if told:
                names = agreed(f"{component} 1.{minor}", names, set(told["components"][component]["flags"]), deprecated)
            for name in names:
                entries.setdefault(name, {})[minor] = instead(deprecated[name]) if name in deprecated else ()
        for name, gate in gates(sources).items():
            gate_table.setdefault(name, {})[minor] = gate
        for name in plugins(sources):
            plugin_table.setdefault(name, {})[minor] = ()
        for struct, fields in kubelet_fields(sources).items():
            for name, kind in fields.items():
                field_table.setdefault(f"{struct}.{name}", {})[minor] = (kind,)
        if told:
            same(f"gates 1.{minor}", gates(sources), {n: tuple(g.values()) for n, g in told["featureGates"].items()})
            same(f"plugins 1.{minor}", plugins(sources), set(told["components"]["kube-apiserver"]["admissionPlugins"]))
    return {
        "flags.json": {component: packed(entries) for component, entries in flag_table.items()},
        "gates.json": packed(gate_table),
        "plugins.json": packed(plugin_table),
        "kubelet.json": packed(reachable(field_table)),
        "pod.json": pod_fields(Sources(modules, MINORS[-1])),
        "etcd.json": etcd(modules, json.loads((releases / "etcd.json").read_text())),
    }


def agreed(what: str, read: set[str], listed: set[str], deprecated: Mapping[str, str]) -> set[str]:
    """`--help` hides deprecated flags and nothing else: what only the sources have must be deprecated."""
    if listed - read:
        raise SystemExit(f"{what}: not found in the sources: {sorted(listed - read)}")
    for name in sorted(read - listed - set(deprecated)):
        sys.stderr.write(f"{what}: left out, since --help does not list it: {name}\n")
    return listed | (read & set(deprecated))


def same(what: str, read: object, listed: object) -> None:
    if read != listed:
        raise SystemExit(f"{what}: sources and program disagree")


def instead(message: str) -> tuple[str]:
    """The flags that a deprecation notice names, each with its hyphens; empty where it names none."""
    return (" ".join(dict.fromkeys(re.findall(r"--[a-z][a-z0-9-]+[a-z0-9]", message))),)


def reachable(fields: Mapping[str, ByVersion]) -> dict[str, ByVersion]:
    """Only the structs that KubeletConfiguration leads to."""
    structs, wanted = {"KubeletConfiguration"}, {"KubeletConfiguration"}
    while wanted:
        kinds = {
            value[0]
            for name, versions in fields.items()
            if name.partition(".")[0] in wanted
            for value in versions.values()
        }
        names = {part for kind in kinds for part in re.findall(r"\w+", kind)}
        wanted = {n for n in names if any(f.startswith(n + ".") for f in fields)} - structs
        structs |= wanted
    return {name: versions for name, versions in fields.items() if name.partition(".")[0] in structs}


# Flags of 3.5 that later patches of 3.4 have too than the one whose --help is at hand (3.4.23).
ETCD_34_LATER = frozenset({"listen-client-http-urls", "tls-min-version", "tls-max-version"})


def etcd(modules: Path, helped: Mapping[str, Mapping[str, list[str]]]) -> dict[str, object]:
    """`--help` also prints option names that are only spoken of, and flags that are gone: the sources decide."""
    flag_table: dict[str, ByVersion] = {}
    gate_table: dict[str, ByVersion] = {}
    ignored = (
        etcd_flags(modules, 5) & etcd_flags(modules, 6) & {"cluster-active-size", "config", "force", "snapshot", "v"}
    )
    for line in ETCD_LINES:
        told = helped[f"3.{line}"]
        names = etcd_flags(modules, line) if line > 4 else set(told["flags"]) | ignored | ETCD_34_LATER
        for name in sorted(set(told["flags"]) - names):
            sys.stderr.write(f"etcd 3.{line}: left out, since the sources do not register it: {name}\n")
        for name in names:
            flag_table.setdefault(name, {})[line] = ()
        for name in told["featureGates"]:
            gate_table.setdefault(name, {})[line] = ()
    return {"flags": packed(flag_table), "gates": packed(gate_table)}


def packed(entries: Mapping[str, ByVersion]) -> dict[str, list[list[Any]]]:
    return {name: runs(entries[name]) for name in sorted(entries)}


def written(content: object, depth: int = 0) -> str:
    """JSON with one entry a line, so that a change of one flag is a change of one line."""
    if isinstance(content, dict):
        inner = ",\n".join(f"{json.dumps(key)}: {written(value, depth + 1)}" for key, value in content.items())
        return "{\n" + inner + "\n}"
    return json.dumps(content, separators=(",", ":"))


def main() -> None:
    if len(sys.argv) != 3:
        raise SystemExit(__doc__)
    for name, content in rebuild(Path(sys.argv[1]), Path(sys.argv[2])).items():
        (HERE / name).write_text(written(content) + "\n")


if __name__ == "__main__":
    main()
