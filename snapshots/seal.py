"""zstd, age, Ed25519: bytes are sealed as they stream in, and opened as they stream out.

What `Sealer` makes, `age --decrypt` and `zstd -d` open; without recipients it is zstd alone. age tells nobody who wrote
a file, so the record that names the sealed bytes by their sha256 is signed.
"""

from __future__ import annotations

import hashlib
import threading
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from typing import Any

import pyrage

try:
    from compression import zstd  # type: ignore[import-not-found,unused-ignore]
except ImportError:  # before Python 3.14
    from backports import zstd  # type: ignore[no-redef,unused-ignore]

from drtool.core.errors import CannotOpen, Unsound, UsageError
from snapshots.pipe import Pipe

LEVEL = 1
"""On etcd data 3 takes half as long again and gains a few percent at most."""
GATHER = 256 << 10
OPENED = 1 << 20
LOCKED = (b"age-encryption.org/v1\n", b"-----BEGIN AGE ENCRYPTED FILE-----")
Sink = Callable[[bytes], object]


@dataclass(frozen=True, slots=True)
class Sizes:
    """One part before and after sealing: bytes, and sha256 in lower hex."""

    plain_size: int
    plain_sha256: str
    sealed_size: int
    sealed_sha256: str


def recipient(text: str) -> Any:
    """An age recipient ("age1...", or an "ssh-ed25519"/"ssh-rsa" public key). Raises UsageError.

    A private key in its place is never shown.
    """
    if "SECRET-KEY" in text.upper() or "PRIVATE KEY" in text.upper():
        raise UsageError(
            "a recipient is a private key: give its public half", "age-keygen -y FILE prints it, it begins with age1"
        )
    try:
        if text.startswith("ssh-"):
            return pyrage.ssh.Recipient.from_str(text)
        return pyrage.x25519.Recipient.from_str(text)
    except pyrage.RecipientError as wrong:
        raise UsageError(
            f"{text[:24]!r} is no age recipient: {wrong}",
            "it begins with age1 (age-keygen prints it as the public key)",
        ) from wrong


def identities(text: str, name: str) -> list[Any]:
    """The identities in a file that age-keygen or ssh-keygen wrote. Raises UsageError; the text is never shown."""
    if "-----BEGIN" in text:
        try:
            return [pyrage.ssh.Identity.from_buffer(text.encode())]
        except Exception as wrong:
            raise UsageError(f"{name} holds no SSH key that age can use") from wrong
    lines = [line.strip() for line in text.splitlines()]
    found = [line for line in lines if line and not line.startswith("#")]
    try:
        keys = [pyrage.x25519.Identity.from_str(line) for line in found]
    except pyrage.IdentityError as wrong:
        raise UsageError(f"{name} holds no age identity", "a line in it begins with AGE-SECRET-KEY-1") from wrong
    if not keys:
        raise UsageError(f"{name} holds no age identity", "a line in it begins with AGE-SECRET-KEY-1")
    return keys


def locked(data: bytes) -> bool:
    """Whether an identity file is itself sealed, as `age -p` does it."""
    return data.startswith(LOCKED)


def unlocked(data: bytes, passphrase: str, name: str) -> bytes:
    """Raises CannotOpen."""
    try:
        opened: bytes = pyrage.passphrase.decrypt(data, passphrase)
    except pyrage.DecryptError as wrong:
        raise CannotOpen(f"{name} does not open: {wrong}", "the passphrase is another one") from wrong
    return opened


def throwaway() -> tuple[Any, str]:
    """An identity for this run alone, and its public half: it opens the read-back, then it is forgotten."""
    identity = pyrage.x25519.Identity.generate()
    return identity, str(identity.to_public())


class Sealer:
    """Takes plain bytes by `write`, gives sealed ones to `sink` in pieces of at least 64 KiB but the last.

    `sink` is called from one other thread, which compresses and encrypts too. Use it as a context manager; leaving it
    with an error ends the thread. An error of `sink` comes out of `write` or `finish`.
    """

    def __init__(self, recipients: list[Any], sink: Sink, hashed_elsewhere: bool = False) -> None:
        self._plain, self._sealed = None if hashed_elsewhere else hashlib.sha256(), hashlib.sha256()
        self._plain_size = self._sealed_size = 0
        self._sink = sink
        self._pipe = Pipe()
        self._thread = threading.Thread(target=self._seal, args=(recipients,), name="seal", daemon=True)
        self._thread.start()

    def __enter__(self) -> Sealer:
        return self

    def __exit__(self, kind: object, error: BaseException | None, at: object) -> None:
        self._pipe.fail(error or Abandoned())
        self._thread.join()

    def write(self, piece: bytes) -> None:
        if self._plain is not None:
            self._plain.update(piece)
        self._plain_size += len(piece)
        self._pipe.write(piece)

    def finish(self, plain_sha256: str = "") -> Sizes:
        """Ends the stream; every sealed byte has gone through `sink` when this returns.

        `plain_sha256` is for a caller that has hashed the plain bytes itself.
        """
        self._pipe.close()
        self._thread.join()
        self._pipe.write(b"")  # raises what the thread met
        plain = plain_sha256 if self._plain is None else self._plain.hexdigest()
        return Sizes(self._plain_size, plain, self._sealed_size, self._sealed.hexdigest())

    def _out(self, sealed: bytes) -> None:
        self._sealed.update(sealed)
        self._sealed_size += len(sealed)
        self._sink(sealed)

    def _seal(self, recipients: list[Any]) -> None:
        writer = _Writer(self._out, 1)
        try:
            if recipients:
                pyrage.encrypt_io(_Reader(_compressed(self._pipe)), writer, recipients)
            else:
                for piece in _compressed(self._pipe):
                    self._out(piece)
        except BaseException as failed:  # noqa: BLE001 - carried to the writing thread, which raises it
            self._pipe.fail(writer.error or failed)


def _compressed(pipe: Pipe) -> Iterator[bytes]:
    """With no threads of zstd's own: beside those that feed and empty this one they gained nothing."""
    options = {zstd.CompressionParameter.compression_level: LEVEL, zstd.CompressionParameter.checksum_flag: 1}
    compressor = zstd.ZstdCompressor(options=options)
    while piece := pipe.read():
        if compressed := compressor.compress(piece):
            yield compressed
    yield compressor.flush()


class Abandoned(Exception):
    """The other end gave up; never seen outside this module."""


class _Writer:
    """A file to pyrage; gathers small writes, and keeps the sink's own error, which pyrage would turn into text."""

    def __init__(self, sink: Sink, gather: int) -> None:
        self._sink = sink
        self._gather = gather
        self._held: list[bytes] = []
        self._size = 0
        self.error: BaseException | None = None

    def write(self, piece: bytes) -> int:
        self._held.append(piece)
        self._size += len(piece)
        if self._size >= self._gather:
            self.flush()
        return len(piece)

    def flush(self) -> None:
        if not self._held:
            return
        whole, self._held, self._size = b"".join(self._held), [], 0
        try:
            self._sink(whole)
        except BaseException as failed:
            self.error = failed
            raise


class _Reader:
    """A file to pyrage over an iterator of pieces; keeps the iterator's own error."""

    def __init__(self, pieces: Iterable[bytes]) -> None:
        self._pieces = iter(pieces)
        self._current = memoryview(b"")
        self.error: BaseException | None = None

    def read(self, size: int = -1) -> bytes:
        if not self._current:
            try:
                self._current = memoryview(next(self._pieces, b""))
            except BaseException as failed:
                self.error = failed
                raise
        cut = len(self._current) if size < 0 else min(size, len(self._current))
        taken, self._current = self._current[:cut], self._current[cut:]
        return bytes(taken)


def opened(pieces: Iterable[bytes], keys: list[Any], name: str) -> Iterator[bytes]:
    """The plain bytes of a sealed stream, in pieces of up to 1 MiB; with no `keys` it is taken for zstd alone.

    Raises CannotOpen where no key fits, Unsound where the bytes are damaged or cut; errors of `pieces` pass through.
    """
    plain = _decompressed(_decrypted(pieces, keys, name) if keys else pieces, name)

    def pump(pipe: Pipe) -> None:
        for piece in plain:
            pipe.write(piece)

    yield from _ahead(pump, "zstd")


def _decrypted(pieces: Iterable[bytes], keys: list[Any], name: str) -> Iterator[bytes]:
    def pump(pipe: Pipe) -> None:
        reader, writer = _Reader(pieces), _Writer(pipe.write, GATHER)
        try:
            pyrage.decrypt_io(reader, writer, keys)
            writer.flush()
        except Exception as failed:  # noqa: BLE001 - pyrage's errors have no common base
            raise reader.error or writer.error or _refusal(failed, name) from None

    yield from _ahead(pump, "age")


def _ahead(pump: Callable[[Pipe], None], name: str) -> Iterator[bytes]:
    """What `pump` writes into a pipe, from a thread of its own; its errors come out here."""
    pipe = Pipe()

    def run() -> None:
        try:
            pump(pipe)
            pipe.close()
        except BaseException as failed:  # noqa: BLE001 - carried to the reading thread, which raises it
            pipe.fail(failed)

    thread = threading.Thread(target=run, name=name, daemon=True)
    thread.start()
    try:
        while piece := pipe.read():
            yield piece
    finally:
        pipe.fail(Abandoned())
        thread.join()


def _refusal(failed: BaseException, name: str) -> BaseException:
    if isinstance(failed, pyrage.DecryptError) and "key" in str(failed).lower():
        return CannotOpen(f"{name} was not sealed for any of the given keys", "name the right one with --identity FILE")
    return Unsound(f"{name} is damaged: age cannot open it ({failed})", "use another backup")


def _decompressed(pieces: Iterable[bytes], name: str) -> Iterator[bytes]:
    decompressor = zstd.ZstdDecompressor()
    try:
        for piece in pieces:
            if decompressor.eof:
                raise Unsound(f"{name} is damaged: bytes follow the end of its zstd frame")
            plain = decompressor.decompress(piece, OPENED)
            while True:
                if plain:
                    yield plain
                if decompressor.eof or decompressor.needs_input:
                    break
                plain = decompressor.decompress(b"", OPENED)
    except zstd.ZstdError as damaged:
        raise Unsound(f"{name} is damaged: zstd says {damaged}") from damaged
    if not decompressor.eof:
        raise Unsound(f"{name} is cut: its zstd frame does not end")
