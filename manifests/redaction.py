"""What leaves a node in a bundle: everything that checks read, and no private key, token, password or Secret value.

What is taken out leaves its shape behind, so that a check finds the same without it: a private key becomes a block that
holds the SHA-256 of its public half (or what is wrong with it), an encryption key becomes another of the same length,
equal where the keys were equal. Lines keep their numbers. Of a file whose kind is not known only name and size stay.
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import re
from collections.abc import Iterator
from functools import cache

import yaml

from manifests.document import Unparsable, parse
from manifests.pki.certificates import blocks, read_pem, withheld_block

WITHHELD = "withheld"
PEM_FILES = (".crt", ".pem", ".key", ".pub", ".cer", ".cert")
YAML_FILES = (".yaml", ".yml", ".json", ".conflist", ".kubeconfig", "-kubeconfig", "/.kube/config")
TEXT_FILES = (
    *(".conf", ".toml", ".env", ".service", ".mount", ".swap", ".cfg", ".rules", ".xml", ".sh", "_state"),
    *("/kubelet", "/environment", "/hosts", "/hostname", "/fstab", "/machine-id", "/os-release", "/adjtime", "/config"),
)
TEXT_PLACES = ("/proc/", "/sys/", "/etc/sysctl", "/etc/modules-load.d/", "/usr/lib/sysctl.d/", "/run/sysctl.d/")
LOG_PLACES = ("/var/log/", "/drtool/")

# names of values that are secret, and names that only sound so
SECRET = re.compile(
    r"(?i)token|passw|passphrase|secret|client-key-data|private[-_]?key|credential|auth_?pass|^auth$|access[-_]?key|"
    r"api[-_]?key|certificate-?key"
)
PUBLIC = re.compile(
    r"(?i)^(.*(file|path|ttl|url|name|ref|provider|audience|expiration|syncs|cleaner|enabled|webhook.*|mode|kind|-auth)"
    r"|automount.*|.*tokens|.*secrets|.*serviceaccounttoken|access_?key_?id_?env)$"
)
WORDS = (
    re.compile(r"(?<![\w-])eyJ[\w-]{6,4000}\.[\w-]{6,4000}\.[\w-]{0,4000}"),  # a JSON web token
    re.compile(r"(?<![\w.])[a-z0-9]{6}\.[a-z0-9]{16}(?![\w.])"),  # a bootstrap token of kubeadm
    re.compile(r"AGE-SECRET-KEY-1[A-Z0-9]+"),
    re.compile(r"(?<=://)[^/@\s:\"']{1,200}:[^/@\s\"']{1,200}(?=@)"),  # user and password of a URL
)
NAMED = (
    r"(?:token|passwd|password|passphrase|secret|auth_pass|api[-_]?key|access[-_]?key|credential|certificate-?key)"
    r"[\w-]{0,40}(?:\\?[\"'])?[ \t]*[:=][ \t]*(?:\\?[\"'])?"
    r"|\bbearer[ \t]+|\bauth_pass[ \t]+|\bstats[ \t]+auth[ \t]+|\bpassword[ \t]+"
)
AUTH = r"(?<![\w-])auth[\"']?[ \t]*[:=][ \t]*[\"']?"
HARMLESS = r"(?!/|true\b|false\b|null\b|none\b|withheld|\d+\b|[|>{\[&*])"
AFTER = re.compile(rf"(?i)({NAMED}|{AUTH})({HARMLESS}[^\s\"'\\,}}\]]{{3,}})")
# a log says "v1.Secret: failed to list" and "invalid bearer token": there a value must look like one
AFTER_IN_LOG = re.compile(rf"(?i)({NAMED})((?!/|withheld)(?=[^\s\"'\\,}}\]]*\d)[^\s\"'\\,}}\]]{{6,}})")
TELLING = re.compile(
    r"(?i)token|passw|passphrase|secret|auth|key|credential|bearer|eyJ|://|\b[a-z0-9]{6}\.[a-z0-9]{16}\b"
)
WORD = re.compile(r"[A-Za-z0-9+/=_.-]{16,}")
BASE64 = re.compile(r"(?<![\w.-])(?=[a-z0-9+/]{0,200}[A-Z])(?=[A-Za-z+/]{0,200}[0-9])[A-Za-z0-9+/]{40,}=*")


class Redaction:
    """Redacts the files of one bundle, and remembers what it took out, so that no other file lets it slip.

    `keys` are the public halves of the private keys by file: SHA-256 of SubjectPublicKeyInfo, in hex.
    """

    def __init__(self) -> None:
        self.taken: set[str] = set()
        self.keys: dict[str, tuple[str, ...]] = {}

    def file(self, path: str, data: bytes) -> bytes | None:
        """The file without its secrets; None where nothing of it may leave."""
        if path.startswith(LOG_PLACES) and not path.endswith(".yaml"):
            return self._text(data, AFTER_IN_LOG)
        if path.startswith(TEXT_PLACES):
            return self._text(data)
        if b"\0" in data:
            return None
        if path.endswith(PEM_FILES):
            return self._pem(path, data)
        if b"PRIVATE KEY-----" in data:
            data = self._pem(path, data)
        if path.endswith(YAML_FILES) or path.startswith("/etc/kubernetes/manifests/") or _structured(path, data):
            return self._yaml(path, data)
        if path.startswith("/etc/kubernetes/") and path.endswith(".conf"):
            return self._broken_yaml(data)
        return self._text(data) if path.endswith(TEXT_FILES) else None

    def text(self, data: bytes) -> bytes:
        return self._text(data)

    def last_look(self, data: bytes) -> bytes:
        """Takes out what was a secret in another file: a token in a log, say."""
        taken = self.taken
        text = WORD.sub(lambda word: WITHHELD if word[0] in taken else word[0], data.decode("latin-1"))
        return text.encode("latin-1")

    def _take(self, secret: str) -> None:
        """Words that are long enough, and not of a language, to be looked for elsewhere."""
        self.taken.update(part for part in secret.split() if len(part) >= 16 and re.search(r"\d", part))

    # ---- PEM

    def _pem(self, path: str, data: bytes) -> bytes:
        """Certificates and public keys as they are, each private key as its public half."""
        out, at = b"", 0
        for block in blocks(data):
            label, text = block.label, data[block.start : block.end]
            public = label.endswith(("CERTIFICATE", "PUBLIC KEY", "REQUEST")) or label.startswith("WITHHELD ")
            out += self._around(path, data[at : block.start])
            out += text if public else self._key(path, text, label)
            at = block.end
        return out + self._around(path, data[at:])

    def _around(self, path: str, data: bytes) -> bytes:
        """Text beside the blocks: nothing in it counts, and a key that was cut short may lie there."""
        text = data.decode("latin-1")
        if not (path.endswith(".key") or "PRIVATE KEY" in text or (path.endswith(PEM_FILES) and BASE64.search(text))):
            return data
        self._take(text)
        return b"".join(re.sub(rb"[^\r\n]+", WITHHELD.encode(), line) for line in data.splitlines(keepends=True))

    def _key(self, path: str, block: bytes, label: str) -> bytes:
        read = read_pem(path, block)
        self._take(re.sub(r"-----[A-Z0-9 ]+-----", " ", block.decode("latin-1")))
        if read.private_keys:
            self.keys[path] = (*self.keys.get(path, ()), *read.private_keys)
        made = withheld_block(label, read)
        return made + b"\n" * (block.count(b"\n") - made.count(b"\n"))

    # ---- YAML and JSON

    def _yaml(self, path: str, data: bytes) -> bytes:
        try:
            parse(path, data)
        except Unparsable:
            return self._broken_yaml(data)
        text = data.decode("utf-8-sig")
        edits: list[tuple[int, int, str]] = []
        for root in yaml.compose_all(text, Loader=yaml.CSafeLoader):
            if root is not None:
                edits += self._edits(path, root, (), _kind(root))
        out, at = b"", 0
        for start, end, new in sorted(edits):
            out += self._text(text[at:start].encode()) + _shaped(text[start:end], new).encode()
            at = end
        return out + self._text(text[at:].encode())

    def _edits(self, path: str, node: yaml.Node, where: tuple[str, ...], kind: str) -> Iterator[tuple[int, int, str]]:
        if isinstance(node, yaml.MappingNode):
            name = next((v.value for k, v in node.value if k.value == "name" and isinstance(v.value, str)), "")
            for key, value in node.value:
                step = name if key.value == "value" and name else str(key.value)  # an environment variable
                yield from self._edits(path, value, (*where, step), kind)
        elif isinstance(node, yaml.SequenceNode):
            for item in node.value:
                yield from self._edits(path, item, where, kind)
        elif node.value and node.tag != "tag:yaml.org,2002:bool":
            new = self._value(path, node.value, where, kind)
            if new != node.value:
                yield node.start_mark.index, node.end_mark.index, new

    def _value(self, path: str, text: str, where: tuple[str, ...], kind: str) -> str:
        key = where[-1] if where else ""
        if kind == "EncryptionConfiguration" and key == "secret":
            self._take(text)
            return _other_key(text)
        embedded = _embedded_key(text)
        if embedded:
            return base64.b64encode(self._pem(path, embedded)).decode()
        secret = bool(SECRET.search(key)) and not PUBLIC.search(key) and not text.startswith("/")
        if secret or "PRIVATE KEY" in text or (kind == "Secret" and where[:1] in (("data",), ("stringData",))):
            self._take(text)
            return _like(text) if key.endswith("-data") else WITHHELD
        return text

    def _broken_yaml(self, data: bytes) -> bytes:
        """No structure to go by: what looks like a secret or a key goes, and what is indented below its name."""
        lines, below = [], -1
        for line in data.decode("latin-1").split("\n"):
            indent = len(line) - len(line.lstrip(" \t"))
            if 0 <= below < indent and line.strip():
                self._take(line)
                lines.append(line[:indent] + WITHHELD)
                continue
            below = -1
            key = re.match(r"""[ \t]*(?:- +)?["']?([\w.-]+)["']?[ \t]*[:=]""", line)
            if key and SECRET.search(key[1]) and not PUBLIC.search(key[1]):
                below = indent
                self._take(line[key.end() :].strip(" \"'"))
                lines.append(line[: key.end()] + (f" {WITHHELD}" if line[key.end() :].strip() else ""))
            else:
                lines.append(BASE64.sub(self._word, line))
        return self._text("\n".join(lines).encode("latin-1"))

    # ---- any text

    def _text(self, data: bytes, after: re.Pattern[str] = AFTER) -> bytes:
        lines = data.decode("latin-1").split("\n")
        return "\n".join(self._line(line, after) if TELLING.search(line) else line for line in lines).encode("latin-1")

    def _line(self, text: str, after: re.Pattern[str]) -> str:
        for word in WORDS:
            text = word.sub(self._word, text)
        return after.sub(self._after, text)

    def _word(self, match: re.Match[str]) -> str:
        self._take(match[0])
        return WITHHELD

    def _after(self, match: re.Match[str]) -> str:
        before = re.search(r"[\w-]{0,40}$", match.string[max(0, match.start() - 40) : match.start()])
        name = (before[0] if before else "") + match[1]
        if PUBLIC.search(name.strip("-:=\"' \t\\")):
            return match[0]
        self._take(match[2])
        return match[1] + WITHHELD


def _structured(path: str, data: bytes) -> bool:
    """Whether a file is a Kubernetes object or configuration, whatever its name: a policy, a copy of a manifest."""
    try:
        return any(isinstance(document.get("kind"), str) for document in parse(path, data))
    except Unparsable:
        return False


def _kind(root: yaml.Node) -> str:
    pairs = root.value if isinstance(root, yaml.MappingNode) else []
    return next((str(value.value) for key, value in pairs if key.value == "kind"), "")


def _embedded_key(text: str) -> bytes:
    """PEM in base64 with a private key in it, as kubeconfigs have it; empty for anything else."""
    data = _decoded(text)
    return data if data is not None and b"PRIVATE KEY-----" in data else b""


def _decoded(text: str) -> bytes | None:
    try:
        return base64.b64decode(text, validate=True)
    except (ValueError, binascii.Error):
        return None


def _like(text: str) -> str:
    """In base64 where the old value was."""
    return f"not base64: {WITHHELD}" if _decoded(text) is None else base64.b64encode(WITHHELD.encode()).decode()


def _other_key(text: str) -> str:
    """Another key of the same length, the same for the same key; what is not base64 stays so."""
    secret = _decoded(text)
    return _like(text) if secret is None else base64.b64encode(_stand_in(secret)).decode()


@cache
def _stand_in(secret: bytes) -> bytes:
    """As long as the key. Slow on purpose: a weak key must not be found by trying."""
    return hashlib.scrypt(secret, salt=b"drtool bundle", n=1 << 14, r=8, p=1, dklen=len(secret)) if secret else b""


def _shaped(old: str, new: str) -> str:
    """The new value in the place of the old scalar, with as many lines."""
    return f'"{new}"' + "\n" * old.count("\n")
