"""Structure and faults of a transcript: atoms, turns, steps, safe cuts, validate; ctxfast against the reference."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast
from benches.conftest import Transcripts
from benches.transcripts import Message
from ctxfast import reference

QUESTIONS: dict[str, Callable[[Any, list[Message]], object]] = {
    "atoms": lambda module, messages: module.atoms(messages),
    "turn_starts": lambda module, messages: module.turn_starts(messages),
    "step_starts": lambda module, messages: module.step_starts(messages),
    "safe_cuts": lambda module, messages: module.safe_cuts(messages),
    "find_safe_cut": lambda module, messages: module.find_safe_cut(messages, len(messages) // 2),
    "find_safe_cut role": lambda module, messages: module.find_safe_cut(messages, len(messages) // 2, "role"),
    "validate": lambda module, messages: [(found.code, found.index) for found in module.validate(messages)],
}


@pytest.mark.parametrize("question", QUESTIONS)
def test_structure(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, question: str) -> None:
    measure(benchmark, ctxfast, question, transcripts(size, storage="real"))


@pytest.mark.parametrize("question", QUESTIONS)
@pytest.mark.sizes_up_to(10_000)
def test_structure_reference(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, question: str) -> None:
    measure(benchmark, reference, question, transcripts(size, storage="real"))


def measure(benchmark: BenchmarkFixture, module: ModuleType, question: str, messages: list[Message]) -> None:
    benchmark.group = f"{question} {len(messages)}"
    ask = QUESTIONS[question]
    assert ask(module, messages) == ask(reference, messages)
    benchmark(ask, module, messages)
