"""Side-by-side timing: contenders take turns (A B A B ...), so that a busy moment of the machine hits all."""

from __future__ import annotations

import gc
from collections.abc import Callable, Coroutine, Mapping
from dataclasses import dataclass
from statistics import median
from time import perf_counter
from typing import Any

SAMPLE = 0.002  # seconds that one sample should take at least, as far above the clock's own noise
ROUNDS = range(5, 201)  # fewest and most rounds
OTHER_DATA = bytearray(64 << 20)  # twice a large last-level cache


@dataclass(frozen=True)
class Times:
    """Seconds per call: for each contender one sample of each round."""

    samples: dict[str, list[float]]

    def __contains__(self, name: str) -> bool:
        return name in self.samples

    def __getitem__(self, name: str) -> float:
        """Median of a contender."""
        return median(self.samples[name])

    def ratio(self, name: str, other: str) -> float:
        """Median of the ratios within each round: steadier than that of the medians on a busy machine."""
        pairs = zip(self.samples[name], self.samples[other], strict=True)
        return median(mine / others for mine, others in pairs)


def interleaved(contenders: Mapping[str, Callable[[], object]], *, seconds: float = 1.0, cold: bool = False) -> Times:
    """Seconds per call of each contender, measured in turns for about `seconds` each.

    Each sample follows an untimed call of the same function, so that all find the caches as they left them.
    With `cold` it is a single call that finds other data in them: an agent counts once a request. Leave out
    who is slower by orders of magnitude: even after an untimed call it spoils the next one's caches.
    """
    repeats = {name: 1 if cold else _repeats(function) for name, function in contenders.items()}
    samples: dict[str, list[float]] = {name: [] for name in contenders}
    gc.collect()
    gc.disable()  # as timeit does: a collection would be charged to whoever happens to run
    try:
        start = perf_counter()
        for done in range(ROUNDS.stop):
            if done >= ROUNDS.start and perf_counter() - start > seconds * len(contenders):
                break
            for name, function in contenders.items():
                _empty_caches() if cold else function()
                samples[name].append(_time(function, repeats[name]))
    finally:
        gc.enable()
    return Times(samples)


def _empty_caches() -> None:
    OTHER_DATA.translate(None)  # reads and copies it


def _repeats(function: Callable[[], object]) -> int:
    function()
    once = max(_time(function, 1), 1e-8)
    return max(1, round(SAMPLE / once))


def _time(function: Callable[[], object], repeats: int) -> float:
    start = perf_counter()
    for _ in range(repeats):
        function()
    return (perf_counter() - start) / repeats


def run(coroutine: Coroutine[Any, Any, Any]) -> Any:
    """What a coroutine that waits for nothing returns: no event loop is timed."""
    try:
        coroutine.send(None)
    except StopIteration as stop:
        return stop.value
    raise AssertionError("it waits for something")
