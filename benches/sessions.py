"""Real sessions of coding agents, request by request, and what the agent needs again of each tool output.

The sessions are the optional data (`tests/cases.py`). A session is what lies between two compactions. System messages,
reasoning, images and what the client put into the agent's mouth are left out of the messages; there are at least three
responses and one tool output. Each message has a `position`: its index, by which it is known in a shorter list.

A **need** is a place where the agent repeats what it had from a tool: its text, reasoning or arguments have, for the
first time, 24 characters with at least 14 letters or digits that only tool outputs had before; or it makes a call again
that has the same output again. What it reads again, `Report.reread_of_pruned` knows.
"""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from cases import Message, as_openai, transcripts

from ctxfast import EstimatorConfig, TokenCounter

AGENTS = {
    "Claude Code": "claude-code",
    "Codex": "codex-rollout",
    "OpenCode": "opencode",
    "pi": "pi",
    "Copilot CLI": "copilot-cli",
    "Gemini CLI": "gemini-cli",
}
LEAST_RESPONSES = 3
QUOTE = 24  # characters
LETTERS = 14  # of them
MANY = 17  # quotes in one response: 40 characters in a row, or several places


@dataclass(frozen=True)
class Need:
    """What a response repeats."""

    request: int
    """Number of the request that it answers, from 0."""
    sources: tuple[int, ...]
    """Positions of all outputs that have it."""
    quotes: int
    """Quotes from exactly these; 0: a call that was made again."""


@dataclass(frozen=True)
class Session:
    """Messages in OpenAI's form."""

    agent: str
    name: str
    messages: list[Message]
    needs: dict[int, list[Need]]
    """By request."""
    rate: float
    """Characters per token."""

    @cached_property
    def counter(self) -> TokenCounter:
        """A flat rate: what is measured is the policy and not the estimate, and it is fast."""
        return TokenCounter.flat(EstimatorConfig(chars_per_token=self.rate, message_overhead=0))

    @cached_property
    def requests(self) -> list[int]:
        """Where each request ends."""
        return requests_of(self.messages)


def requests_of(messages: list[Message]) -> list[int]:
    """Where each request ends: before a response, which may be several messages."""
    roles = [message["role"] for message in messages]
    return [at for at in range(1, len(roles)) if roles[at] == "assistant" != roles[at - 1]]


def sessions(directory: Path, rate: float | None = None, agents: Iterable[str] = AGENTS) -> Iterator[Session]:
    """The sessions in the folders of these agents. `rate`: characters per token; `None`: that of the model."""
    for agent in agents:
        folder = directory / AGENTS[agent]
        for file in sorted(folder.iterdir()) if folder.is_dir() else ():
            parts = (part for transcript in transcripts(file) for part in between_compactions(transcript))
            for number, part in enumerate(parts):
                spoken = [message for message in part if not is_left_out(message)]
                roles = Counter(message["role"] for message in spoken)
                if roles["assistant"] >= LEAST_RESPONSES and roles["tool"]:
                    yield session(agent, f"{AGENTS[agent]}/{file.name} {number}", spoken, rate)


def between_compactions(transcript: list[Message]) -> Iterator[list[Message]]:
    """A transcript in the loaders' common form, cut at the compactions that were recorded."""
    part: list[Message] = []
    for message in [*transcript, {"role": "boundary"}]:
        if message["role"] != "boundary":
            part.append(message)
        elif part:
            yield part
            part = []


def is_left_out(message: Message) -> bool:
    """System messages are in front of the list, and what the client has put in was not answered by the model."""
    return message["role"] == "system" or (message["role"] == "assistant" and "injected" in message["flags"])


def session(agent: str, name: str, part: list[Message], rate: float | None) -> Session:
    """From messages in the loaders' common form."""
    bare = [{**message, "reasoning": "", "images": []} for message in part]
    errors = [{"is_error": True} if message["error"] else {} for message in part]
    messages = [{**as_openai(message), **errors[at], "position": at} for at, message in enumerate(bare)]
    models = Counter(message["model"] for message in part if message["role"] == "assistant" and message["model"])
    model = models.most_common(1)[0][0] if models else ""
    needs: dict[int, list[Need]] = defaultdict(list)
    for need in needs_of(part, requests_of(messages)):
        needs[need.request].append(need)
    return Session(agent, name, messages, dict(needs), rate_of(agent, model) if rate is None else rate)


def rate_of(agent: str, model: str) -> float:
    """Characters per token, as the study of pruning has them that found the defaults."""
    if re.search(r"(sonnet|opus|fable|haiku)-5|4[-.]7", model):
        return 2.25
    if "claude" in model or agent == "Claude Code":
        return 2.8
    return 3.7 if "gemini" in model else 3.99


# ---------------------------------------------------------------------------------------------------------- needs


def needs_of(part: list[Message], ends: list[int]) -> Iterator[Need]:
    """Of messages in the loaders' common form; `ends` are those of the requests."""
    number_of = dict.fromkeys(range(len(part)), -1)  # by position: the request that a message answers
    for number, (start, stop) in enumerate(zip(ends, [*ends[1:], len(part)], strict=True)):
        number_of.update(dict.fromkeys(range(start, stop), number))
    for (at, sources), quotes in quoted(part).items():
        yield Need(number_of[at], sources, quotes)
    for at, sources in repeated(part):
        yield Need(number_of[at], sources, 0)


def quoted(part: list[Message]) -> Counter[tuple[int, tuple[int, ...]]]:
    """How many quotes stand for the first time in which message, and which outputs have them, all before it."""
    first: dict[str, int] = {}
    for at, message in enumerate(part):
        if message["role"] != "tool":
            text = words(message)
            for start in range(len(text) - QUOTE + 1):
                first.setdefault(text[start : start + QUOTE], at)
    sources: dict[str, list[int]] = {}
    for at, message in enumerate(part):
        text = message["text"] if message["role"] == "tool" else ""
        for start in range(len(text) - QUOTE + 1):
            quote = text[start : start + QUOTE]
            if first.get(quote, -1) <= at:
                continue
            found = sources.setdefault(quote, [])
            if found[-1:] != [at] and part[first[quote]]["role"] == "assistant":
                found.append(at)
    return Counter(
        (first[quote], tuple(found))
        for quote, found in sources.items()
        if found and sum(map(str.isalnum, quote)) >= LETTERS
    )


def words(message: Message) -> str:
    """All that somebody says in a message, arguments of calls as the texts in them."""
    called = [text for call in message["calls"] for text in texts_in(arguments(call["args"]))]
    return "\n".join([message["text"], message["reasoning"], *called])


def arguments(text: str) -> Any:
    """What a call was made with; text that is no JSON as it is."""
    try:
        return json.loads(text)
    except ValueError:
        return text


def texts_in(value: Any) -> Iterator[str]:
    """All texts within a JSON value."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, (dict, list)):
        for item in value.values() if isinstance(value, dict) else value:
            yield from texts_in(item)


def repeated(part: list[Message]) -> Iterator[tuple[int, tuple[int, ...]]]:
    """Calls, other than reads by a tool for that, whose output is what the same call gave in an earlier step."""
    open_calls: dict[Any, tuple[int, str]] = {}
    seen: dict[tuple[str, str], list[tuple[int, int]]] = defaultdict(list)  # positions of call and output
    for at, message in enumerate(part):
        for call in message["calls"]:
            open_calls[call["id"]] = (at, "" if "read" in call["name"].lower() else f"{call['name']} {call['args']}")
        if message["role"] == "tool" and message["call_id"] in open_calls:
            asked, key = open_calls.pop(message["call_id"])
            if key:
                sources = tuple(output for call_at, output in seen[key, message["text"]] if call_at < asked)
                if sources:
                    yield asked, sources
                seen[key, message["text"]].append((asked, at))
