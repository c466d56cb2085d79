"""CRC-32C, and that of two parts put together from the CRCs of both: what zlib's crc32_combine does for CRC-32."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from importlib.machinery import PathFinder
from importlib.util import find_spec, module_from_spec
from typing import TypeAlias

Checksum: TypeAlias = Callable[..., int]

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


def _extension() -> Checksum:
    """The C function of the package crc32c, without the package.

    That imports a command line and its own metadata, half of the time in which a short command starts.
    """
    package = find_spec("crc32c")
    places = package.submodule_search_locations if package else None
    found = PathFinder.find_spec("_crc32c", places) if places else None
    if found is None or found.loader is None:  # packed or built otherwise
        from crc32c import crc32c as plain

        return plain
    module = module_from_spec(found)
    found.loader.exec_module(module)
    function: Checksum = module.crc32c
    return function


crc32c = _extension()
