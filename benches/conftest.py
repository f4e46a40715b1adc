"""What the benchmarks share: the sizes to run and cached transcripts."""

from __future__ import annotations

import functools
import os
from typing import Protocol

import pytest

from benches.transcripts import Message, Shape, Storage, make_transcript

ALL_SIZES = "100,1000,10000,100000"


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--sizes",
        default=os.environ.get("CTXFAST_BENCH_SIZES", ALL_SIZES),
        help="numbers of messages, separated by commas; 100,1000 is a smoke run",
    )


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sizes_up_to(n): leave out larger transcripts")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "size" in metafunc.fixturenames:
        marker = metafunc.definition.get_closest_marker("sizes_up_to")
        largest = marker.args[0] if marker else None
        sizes = [int(size) for size in metafunc.config.getoption("--sizes").split(",")]
        metafunc.parametrize("size", [size for size in sizes if largest is None or size <= largest])


class Transcripts(Protocol):
    """`make_transcript`, remembering the last ones: 100,000 messages are 0.4 to 0.8 GB."""

    def __call__(
        self, n_messages: int, *, storage: Storage = ..., shape: Shape | None = ..., one_turn: bool = ...
    ) -> list[Message]: ...


@pytest.fixture(scope="session")
def transcripts() -> Transcripts:
    return functools.lru_cache(maxsize=8)(make_transcript)
