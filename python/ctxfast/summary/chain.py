"""From a structured summary over a plain one to one without a model: the caller always gets a summary."""

from __future__ import annotations

import threading
import time
from collections.abc import Awaitable, Callable, Generator, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from ctxfast._core import TokenCounter
from ctxfast.errors import BudgetError
from ctxfast.summary.checking import SummaryCheck, SummaryProblem, check_summary, summary_text
from ctxfast.summary.fallback import DEFAULT_TOKENS, fallback_of_summaries, fallback_summary
from ctxfast.summary.prompts import build_condensed_prompt, build_summary_prompt, default_target, texts_of
from ctxfast.summary.reading import read, tokens_of_option

__all__ = ["Summarizer", "Summary", "acondense", "asummarise", "condense", "summarise"]

Summarizer = Callable[[str], "str | Awaitable[str]"]
"""A model: it is given a prompt and gives a text, at once or to be awaited."""

TIMEOUT = 120.0


@dataclass(frozen=True)
class Summary:
    """A summary, and how it came about."""

    text: str
    kind: Literal["structured", "plain", "deterministic"]
    tokens: int
    problems: tuple[SummaryProblem, ...]
    """Why the better kinds were not accepted, in the order in which they were tried."""
    ok: bool
    """Whether it is smaller than what it replaces. If not, leave the messages as they are."""


@dataclass(frozen=True)
class Failed:
    """A call of the summariser that gave nothing."""

    problem: SummaryProblem
    overflow: bool = False


def summarise(
    messages: Sequence[Any],
    previous_summary: str | None = None,
    *,
    summarize: Summarizer | None = None,
    structured: bool = True,
    target_tokens: float | None = None,
    max_tokens: float | None = None,
    timeout: float | None = TIMEOUT,
    counter: TokenCounter | None = None,
) -> Summary:
    """A summary of some messages: structured, else plain, else without a model.

    `summarize` is a model: it is given a prompt (`build_summary_prompt`, of at most `max_tokens` tokens, its room) and
    gives a text. What it gives is cleaned and checked (`check_summary`): it may have `target_tokens` tokens (default: a
    fifth of the messages, 300 to 2,000) and must be smaller than the messages and the previous summary. If it is not
    accepted, or `summarize` raises, a plain summary is asked for, in half of the room if the prompt was too large for
    the model, and after that `fallback_summary` is taken, at once if there is no summariser or after `timeout` seconds
    (for all calls together; `None`: no limit). A call that hangs is left to itself, in a thread. `structured=False`
    begins with the plain form.

    Nothing that `summarize` does raises, but for `KeyboardInterrupt` and its like. Raises `BudgetError` for a number of
    tokens that is none, `TypeError` or `ValueError` for a `summarize` or `timeout` that means nothing,
    `MessageTypeError` or `MessageValueError` for a message that cannot be read.

    >>> answer = {"role": "assistant", "content": "Done. " * 300}
    >>> talk = [{"role": "user", "content": "Rename parse() to read()."}, answer]
    >>> summarise(talk, summarize=lambda prompt: "parse() is read() now.", structured=False)
    Summary(text='parse() is read() now.', kind='plain', tokens=6, problems=(), ok=True)
    >>> summarise(talk).kind
    'deterministic'
    """
    deadline = deadline_of(summarize, timeout)
    task = of_messages(messages, previous_summary, target_tokens, max_tokens, counter)
    return run(attempts(task, structured=structured, ask=summarize is not None), summarize, deadline)


async def asummarise(
    messages: Sequence[Any],
    previous_summary: str | None = None,
    *,
    summarize: Summarizer | None = None,
    structured: bool = True,
    target_tokens: float | None = None,
    max_tokens: float | None = None,
    timeout: float | None = TIMEOUT,
    counter: TokenCounter | None = None,
) -> Summary:
    """`summarise` without blocking: a coroutine function runs in this event loop, any other summariser in a thread."""
    deadline = deadline_of(summarize, timeout)
    task = of_messages(messages, previous_summary, target_tokens, max_tokens, counter)
    return await arun(attempts(task, structured=structured, ask=summarize is not None), summarize, deadline)


def condense(
    summaries: Sequence[str],
    *,
    summarize: Summarizer | None = None,
    structured: bool = True,
    target_tokens: float | None = None,
    max_tokens: float | None = None,
    timeout: float | None = TIMEOUT,
    counter: TokenCounter | None = None,
) -> Summary:
    """One summary of several, given from the oldest to the newest: the chain of `summarise`, with its options.

    The prompt is that of `build_condensed_prompt`; `target_tokens` is 2,000 if it is not given. Without a model the
    entries of each section stand together, each thing as the newest summary has it. Raises `ValueError` if there is no
    summary, and what `summarise` raises.
    """
    deadline = deadline_of(summarize, timeout)
    task = of_summaries(summaries, target_tokens, max_tokens, counter)
    return run(attempts(task, structured=structured, ask=summarize is not None), summarize, deadline)


async def acondense(
    summaries: Sequence[str],
    *,
    summarize: Summarizer | None = None,
    structured: bool = True,
    target_tokens: float | None = None,
    max_tokens: float | None = None,
    timeout: float | None = TIMEOUT,
    counter: TokenCounter | None = None,
) -> Summary:
    """`condense` without blocking, as `asummarise`."""
    deadline = deadline_of(summarize, timeout)
    task = of_summaries(summaries, target_tokens, max_tokens, counter)
    return await arun(attempts(task, structured=structured, ask=summarize is not None), summarize, deadline)


# ------------------------------------------------------------------------------------------------ the chain


@dataclass(frozen=True)
class _Task:
    """What is to be summarised."""

    prompt: Callable[[bool, int | None], str]
    """The prompt, structured or not, within some room."""
    fallback: Callable[[int], str]
    """A summary of so many tokens without a model."""
    tokens: int
    characters: int
    target: int
    room: int | None
    counter: TokenCounter


def of_messages(
    messages: Sequence[Any],
    previous: str | None,
    target_tokens: float | None,
    max_tokens: float | None,
    counter: TokenCounter | None,
) -> _Task:
    """Messages, and the summary of what was before."""
    counter = TokenCounter.default() if counter is None else counter
    target, room = tokens_of_option("target_tokens", target_tokens), tokens_of_option("max_tokens", max_tokens)
    told = read(messages, counter)
    tokens = sum(one.tokens for one in told) + counter.text(previous or "")
    characters = sum(len(one.text) + len(one.summary or "") for one in told) + len(previous or "")
    characters += sum(len(output.text) for one in told for output in one.outputs)
    characters += sum(len(call.tool) + len(call.arguments) for one in told for call in one.calls)
    target = target or default_target(tokens)

    def prompt(structured: bool, room: int | None) -> str:
        options = {"structured": structured, "target_tokens": target, "max_tokens": room, "counter": counter}
        return build_summary_prompt(messages, previous, **options)  # type: ignore[arg-type]

    def fallback(size: int) -> str:
        return fallback_summary(messages, previous, max_tokens=size, counter=counter)

    return _Task(prompt, fallback, tokens, characters, target, room, counter)


def of_summaries(
    summaries: Sequence[str], target_tokens: float | None, max_tokens: float | None, counter: TokenCounter | None
) -> _Task:
    """Several summaries."""
    counter = TokenCounter.default() if counter is None else counter
    target = tokens_of_option("target_tokens", target_tokens) or DEFAULT_TOKENS
    room = tokens_of_option("max_tokens", max_tokens)
    texts = texts_of(summaries)
    placed = [summary_text(text) for text in texts]
    tokens = sum(counter.message({"role": "user", "content": text}) for text in placed)

    def prompt(structured: bool, room: int | None) -> str:
        options = {"structured": structured, "target_tokens": target, "max_tokens": room, "counter": counter}
        return build_condensed_prompt(texts, **options)  # type: ignore[arg-type]

    def fallback(size: int) -> str:
        return fallback_of_summaries(texts, size, counter)

    return _Task(prompt, fallback, tokens, sum(map(len, placed)), target, room, counter)


def run(chain: Generator[str, object, Summary], summarize: Summarizer | None, deadline: float | None) -> Summary:
    """Hands prompts to a summariser and its answers back."""
    from ctxfast.summary.calling import called  # imports asyncio, which takes long

    answer: object = None
    while True:
        try:
            prompt = chain.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        if summarize is not None:
            answer = called(summarize, prompt, deadline)


async def arun(chain: Generator[str, object, Summary], summarize: Summarizer | None, deadline: float | None) -> Summary:
    """The same without blocking."""
    from ctxfast.summary.calling import awaited

    answer: object = None
    while True:
        try:
            prompt = chain.send(answer)
        except StopIteration as stop:
            return stop.value  # type: ignore[no-any-return]
        if summarize is not None:
            answer = await awaited(summarize, prompt, deadline)


def attempts(task: _Task, *, structured: bool, ask: bool) -> Generator[str, object, Summary]:
    """The chain: yields prompts, is sent what the summariser gave, returns the summary."""
    counter, room = task.counter, task.room

    def check(answer: object, *, structured: bool) -> SummaryCheck:
        return check_summary(
            answer,
            max(task.tokens, 1),
            source_characters=task.characters,
            target_tokens=task.target,
            structured=structured,
            counter=counter,
        )

    problems: list[SummaryProblem] = []
    forms = [] if not ask else [True, False] if structured else [False]
    for form in forms:
        try:
            prompt = task.prompt(form, room)
        except BudgetError as error:
            problems.append(SummaryProblem("no_room", str(error), limit=room))
            continue
        answer = yield prompt
        if isinstance(answer, Failed):
            problems.append(answer.problem)
            if answer.problem.code == "timed_out":
                break
            if answer.overflow:
                room = max(counter.text(prompt) // 2, 1)
            continue
        found = check(answer, structured=form)
        if found.ok:
            return Summary(found.text, "structured" if form else "plain", found.tokens, tuple(problems), ok=True)
        problems += found.problems
    marks = counter.message({"role": "user", "content": summary_text("")})
    text = task.fallback(max(min(task.target, task.tokens - marks - 2), 1))
    last = check(text, structured=False)
    in_the_way = tuple(problem for problem in last.problems if problem.code != "error_text")
    return Summary(text, "deterministic", counter.text(text), (*problems, *in_the_way), ok=not in_the_way)


def deadline_of(summarize: object, timeout: object) -> float | None:
    """When it is too late. Raises `TypeError`, `ValueError` for what is no callable or no time."""
    if summarize is not None and not callable(summarize):
        raise TypeError(f"summarize: expected something callable or None, got `{type(summarize).__name__}`")
    if timeout is None:
        return None
    if isinstance(timeout, bool) or not isinstance(timeout, (int, float)):
        raise TypeError(f"timeout: expected seconds or None, got {timeout!r}")
    if not timeout > 0:  # of NaN it is not true
        raise ValueError(f"timeout: expected more than 0 seconds, got {timeout!r}")
    return time.monotonic() + min(timeout, threading.TIMEOUT_MAX / 2)
