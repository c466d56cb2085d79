"""Opening NaCl's secretbox (XSalsa20 and Poly1305), which no library of ours has whole.

Salsa20 from https://cr.yp.to/snuffle/spec.pdf, XSalsa20 from https://cr.yp.to/snuffle/xsalsa-20110204.pdf, the box
from https://cr.yp.to/highspeed/naclcrypto-20090310.pdf; Poly1305 is cryptography's. Pure Python, and slow: a Secret of
some kilobytes takes some milliseconds.
"""

from __future__ import annotations

import struct

KEY, NONCE, TAG, BLOCK = 32, 24, 16, 64
SIGMA = struct.unpack("<4I", b"expand 32-byte k")
WORD = 0xFFFF_FFFF
ROUNDS = 10
QUARTERS = (
    *((0, 4, 8, 12), (5, 9, 13, 1), (10, 14, 2, 6), (15, 3, 7, 11)),
    *((0, 1, 2, 3), (5, 6, 7, 4), (10, 11, 8, 9), (15, 12, 13, 14)),
)


def opened(key: bytes, content: bytes) -> bytes | None:
    """`content` is nonce24 + tag16 + ciphertext; None where the tag does not fit: a wrong key, or damage."""
    from cryptography.exceptions import InvalidSignature
    from cryptography.hazmat.primitives.poly1305 import Poly1305

    if len(key) != KEY or len(content) < NONCE + TAG:
        return None
    nonce, tag, sealed = content[:NONCE], content[NONCE : NONCE + TAG], content[NONCE + TAG :]
    stream = keystream(key, nonce, BLOCK // 2 + len(sealed))
    try:
        Poly1305.verify_tag(stream[: BLOCK // 2], sealed, tag)
    except InvalidSignature:
        return None
    mask = int.from_bytes(stream[BLOCK // 2 :])
    return (int.from_bytes(sealed) ^ mask).to_bytes(len(sealed))


def keystream(key: bytes, nonce: bytes, size: int) -> bytes:
    """The first `size` bytes of XSalsa20's stream for a 32-byte key and a 24-byte nonce."""
    words = _rounds(_state(struct.unpack("<8I", key), struct.unpack("<4I", nonce[:16])))
    subkey = tuple(words[place] for place in (0, 5, 10, 15, 6, 7, 8, 9))
    tail = struct.unpack("<2I", nonce[16:])
    blocks = (_block(subkey, (*tail, count & WORD, count >> 32)) for count in range(-(-size // BLOCK)))
    return b"".join(blocks)[:size]


def _block(key: tuple[int, ...], counted: tuple[int, ...]) -> bytes:
    state = _state(key, counted)
    return struct.pack("<16I", *(a + b & WORD for a, b in zip(state, _rounds(state), strict=True)))


def _state(key: tuple[int, ...], counted: tuple[int, ...]) -> list[int]:
    return [SIGMA[0], *key[:4], SIGMA[1], *counted, SIGMA[2], *key[4:], SIGMA[3]]


def _rounds(state: list[int]) -> list[int]:
    x = state.copy()
    for _ in range(ROUNDS):
        for a, b, c, d in QUARTERS:
            x[b] ^= _left(x[a] + x[d], 7)
            x[c] ^= _left(x[b] + x[a], 9)
            x[d] ^= _left(x[c] + x[b], 13)
            x[a] ^= _left(x[d] + x[c], 18)
    return x


def _left(value: int, by: int) -> int:
    value &= WORD
    return (value << by | value >> (32 - by)) & WORD
