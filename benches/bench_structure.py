"""Structure and faults of a transcript: atoms, turns, steps, safe cuts, validate, repair; against the reference."""

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


def broken(messages: list[Message]) -> list[Message]:
    """Every tenth message is lost, every fifteenth comes twice, every twentieth late."""
    result: list[Message] = []
    for index, message in enumerate(messages):
        if index % 10 != 7:
            result.append(message)
        if index % 15 == 4:
            result.append(message)
        if index % 20 == 12 and len(result) > 3:
            result.append(result.pop(-3))
    return result


STATES: dict[str, Callable[[list[Message]], list[Message]]] = {"valid": list, "broken": broken}


def fixes_of(module: Any, messages: list[Message], form: str) -> list[tuple[str, int, str]]:
    return [(fix.code, fix.index, fix.action) for fix in module.repair(messages, form).report.items]


def measure_repair(
    benchmark: BenchmarkFixture, module: ModuleType, messages: list[Message], state: str, form: str
) -> None:
    benchmark.group = f"repair {state} {form} {len(messages)}"
    messages = STATES[state](messages)
    repaired = module.repair(messages, form)
    assert repaired.messages == reference.repair(messages, form).messages  # type: ignore[arg-type]
    assert fixes_of(module, messages, form) == fixes_of(reference, messages, form)
    assert ctxfast.validate(repaired.messages, form) == []  # type: ignore[arg-type]
    assert repaired.report.changed == (state == "broken" or form == "anthropic")
    benchmark(module.repair, messages, form)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_repair(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, state: str, form: str) -> None:
    measure_repair(benchmark, ctxfast, transcripts(size, storage="real"), state, form)


@pytest.mark.parametrize("state", STATES)
@pytest.mark.sizes_up_to(1_000)
def test_repair_reference(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, state: str) -> None:
    measure_repair(benchmark, reference, transcripts(size, storage="real"), state, "openai")
