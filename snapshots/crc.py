"""CRC-32C of two parts put together from the CRCs of both: what zlib's crc32_combine does for CRC-32."""

from __future__ import annotations

from functools import cache

POLYNOMIAL = 0x82F63B78
"""Castagnoli's, reflected: bit 31 stands for x**0."""
ONE, X = 1 << 31, 1 << 30


def combine(first: int, second: int, second_size: int) -> int:
    """The CRC of A followed by B, given those of A and of B, and B's size in bytes."""
    power, place, bits = ONE, 3, second_size
    while bits:
        if bits & 1:
            power = _times(_square(place), power)
        bits >>= 1
        place += 1
    return _times(power, first) ^ second


@cache
def _square(exponent: int) -> int:
    """x**(2**exponent) modulo the polynomial."""
    return X if exponent == 0 else _times(_square(exponent - 1), _square(exponent - 1))


def _times(first: int, second: int) -> int:
    product = 0
    while first:
        if first & ONE:
            product ^= second
        first = first << 1 & 0xFFFF_FFFF
        second = second >> 1 ^ (POLYNOMIAL if second & 1 else 0)
    return product
