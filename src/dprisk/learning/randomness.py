"""A stream of random numbers for each training, so that none depends on which others it ran with.

On a processor each training has a torch generator, which reads 32 bits of its seed and no more. On a GPU that would
take a kernel for each training, so there a number is a hash of the training's key and of its place in the stream
(splitmix64), for all trainings in one go. Either gives the same numbers for the same seed and training each time, but
not the same as the other.
"""

import math
from collections.abc import Callable, Sequence
from functools import cache
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

GOLDEN, FIRST, SECOND = (value - (1 << 64) for value in (0x9E3779B97F4A7C15, 0xBF58476D1CE4E5B9, 0x94D049BB133111EB))


class Streams(Protocol):
    """The streams of some trainings: each call goes on where the last one ended. Rows are trainings."""

    def uniform(self, count: int) -> Tensor:
        """Numbers from (0, 1)."""

    def normal(self, count: int) -> Tensor:
        """Standard normal numbers."""


@cache
def quick(function: Callable[..., Tensor | list[Tensor]]) -> Callable[..., Any]:
    """The function compiled, once."""
    compiled: Callable[..., Any] = torch.compile(function, dynamic=False)
    return compiled


def streams(seed: int, runs: Sequence[int], device: torch.device, fast: bool = False) -> Streams:
    """The streams of the trainings with these numbers under a seed; `fast` ones are drawn by compiled code."""
    if device.type == "cpu":
        return GeneratorStreams(generator_keys(seed, runs).tolist())
    return HashedStreams(stream_keys(seed, runs).tolist(), device, fast)


def stream_keys(seed: int, runs: Sequence[int]) -> npt.NDArray[np.uint64]:
    """A key for each training: a bijection of 64 bits, so that no two under one seed have the same."""
    first = np.random.SeedSequence(seed).generate_state(1, np.uint64)
    keys = first + np.asarray(runs, dtype=np.uint64)
    for factor in (0xFF51AFD7ED558CCD, 0xC4CEB9FE1A85EC53):  # the finaliser of MurmurHash3
        keys = (keys ^ (keys >> np.uint64(33))) * np.uint64(factor)
    return keys ^ (keys >> np.uint64(33))


def generator_keys(seed: int, runs: Sequence[int]) -> npt.NDArray[np.uint32]:
    """The same in 32 bits, as many as a torch generator reads: keys of 64 would soon agree in those that count."""
    first = np.random.SeedSequence(seed).generate_state(1, np.uint32)
    keys = first + np.asarray(runs, dtype=np.uint64).astype(np.uint32)
    for shift, factor in ((16, 0x85EBCA6B), (13, 0xC2B2AE35)):  # the finaliser of MurmurHash3
        keys = (keys ^ (keys >> np.uint32(shift))) * np.uint32(factor)
    return keys ^ (keys >> np.uint32(16))


class GeneratorStreams:
    """A torch generator for each training; keys are of 32 bits."""

    def __init__(self, keys: Sequence[int]) -> None:
        self._generators = [torch.Generator().manual_seed(key) for key in keys]

    def uniform(self, count: int) -> Tensor:
        """Numbers from (0, 1); zero, which is possible in 24 bits, becomes the next."""
        drawn = torch.empty(len(self._generators), count)
        for row, generator in zip(drawn, self._generators, strict=True):
            row.uniform_(generator=generator)
        return drawn.clamp_(min=2.0**-25)

    def normal(self, count: int) -> Tensor:
        """Standard normal numbers."""
        drawn = torch.empty(len(self._generators), count)
        for row, generator in zip(drawn, self._generators, strict=True):
            row.normal_(generator=generator)
        return drawn


class HashedStreams:
    """splitmix64 of key + place: a stream can be entered anywhere, so all trainings are drawn together."""

    def __init__(self, keys: Sequence[int], device: torch.device, fast: bool = False) -> None:
        signed = [key - (1 << 64) if key >= 1 << 63 else key for key in keys]
        self._keys = torch.tensor(signed, dtype=torch.int64, device=device)[:, None]
        self._place, self._normal = 0, quick(hashed_normal) if fast else hashed_normal

    def uniform(self, count: int) -> Tensor:
        """Numbers from (0, 1)."""
        return hashed_uniform(self._keys, self._next(count), count)

    def normal(self, count: int) -> Tensor:
        """Standard normal numbers."""
        return self._normal(self._keys, self._next(-(-count // 2)), count)

    def _next(self, count: int) -> Tensor:
        """Where the next numbers begin; a tensor, so that compiled code need not be compiled for each."""
        start = torch.tensor(self._place, dtype=torch.int64, device=self._keys.device)
        self._place += count
        return start


def hashed_uniform(keys: Tensor, start: Tensor, count: int) -> Tensor:
    """Rows of numbers from (0, 1), of 24 bits."""
    places = start + torch.arange(count, device=keys.device)
    return (_shifted(_mixed(keys + places * GOLDEN), 40).float() + 0.5) * 2.0**-24


def hashed_normal(keys: Tensor, start: Tensor, count: int) -> Tensor:
    """Rows of standard normal numbers, two of each hash (Box and Muller); the largest possible is 6.8."""
    places = start + torch.arange(-(-count // 2), device=keys.device)
    bits = _mixed(keys + places * GOLDEN)
    length = torch.sqrt(-2 * torch.log((_shifted(bits, 32).float() + 0.5) * 2.0**-32))
    angle = (bits & 0xFFFFFFFF).float() * (2 * math.pi * 2.0**-32)
    return torch.cat([length * torch.cos(angle), length * torch.sin(angle)], dim=1)[:, :count]


def _mixed(bits: Tensor) -> Tensor:
    """The finaliser of splitmix64; products overflow, as they should."""
    bits = (bits ^ _shifted(bits, 30)) * FIRST
    bits = (bits ^ _shifted(bits, 27)) * SECOND
    return bits ^ _shifted(bits, 31)


def _shifted(bits: Tensor, places: int) -> Tensor:
    """Shifted right with zeros coming in, as for numbers without a sign."""
    return (bits >> places) & ((1 << (64 - places)) - 1)
