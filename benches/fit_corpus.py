"""Seeded conversations that are cut to a budget, and the checks of what came out: for `fit_peers.py`.

    corpus("loop", 100) -> [Case, ...]

"chat": 5 to 11 user turns with 0 to 3 tool steps each. "loop": one user message and 15 to 29 tool steps. Both end where
a model is to answer next. A step has 1, 2 or 3 parallel calls (60, 25, 15 %). The budget is 15 to 70 % of the whole.
The checks read OpenAI's chat form by themselves and call nothing of ctxfast.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterator
from dataclasses import dataclass
from random import Random
from typing import Literal

from benches.texts import NOUNS, a_name, a_path, corpus
from benches.transcripts import Message

Kind = Literal["chat", "loop"]
KINDS: tuple[Kind, ...] = ("chat", "loop")

OUTPUT_CHARS = 100, 8_000  # of tool outputs, as likely in each octave
TOOLS = {"read_file": "code", "run_command": "log", "search": "paths", "fetch": "json", "ask_docs": "prose"}
SHARES = {1: 60, 2: 25, 3: 15}  # per cent of steps with so many calls


@dataclass(frozen=True)
class Case:
    """A conversation, and the share of it that may stay."""

    messages: list[Message]
    share: float


class _Writer:
    def __init__(self, seed: str) -> None:
        self.rng = Random(seed)
        self.calls = 0

    def text(self, kind: str, chars: int) -> str:
        source, starts = corpus(kind, ornate=False)
        start = min(self.rng.choice(starts), len(source) - chars)
        return source[start : start + chars]

    def user(self, number: int) -> Message:
        """A user message that is like no other."""
        return {"role": "user", "content": f"Request {number}: {self.text('prose', self.rng.randrange(40, 600))}"}

    def step(self) -> list[Message]:
        """A response with calls and their results."""
        calls: list[Message] = []
        results: list[Message] = []
        for _ in range(self.rng.choices(list(SHARES), list(SHARES.values()))[0]):
            self.calls += 1
            call_id, name = f"call_{self.calls:05d}", self.rng.choice(list(TOOLS))
            arguments = json.dumps({"path": a_path(self.rng), "query": a_name(self.rng)})
            calls.append({"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}})
            low, high = map(math.log, OUTPUT_CHARS)
            output = self.text(TOOLS[name], round(math.exp(self.rng.uniform(low, high))))
            results.append({"role": "tool", "tool_call_id": call_id, "content": output})
        # Text, not `None`: LiteLLM gives up on that and returns everything.
        said = f"I look at the {self.rng.choice(NOUNS)} next."
        return [{"role": "assistant", "content": said, "tool_calls": calls}, *results]

    def answer(self) -> Message:
        return {"role": "assistant", "content": self.text("prose", self.rng.randrange(100, 1_200))}

    def system(self) -> Message:
        return {"role": "system", "content": f"You are an agent. {self.text('prose', 1_000)}"}


def conversation(seed: str, steps_of_turns: list[int]) -> list[Message]:
    """A system message, and turns of so many tool steps; each but the last one is answered."""
    writer = _Writer(seed)
    messages = [writer.system()]
    for number, steps in enumerate(steps_of_turns):
        messages.append(writer.user(number))
        for _ in range(steps):
            messages += writer.step()
        if number < len(steps_of_turns) - 1:
            messages.append(writer.answer())
    return messages


def cases(kind: Kind, count: int) -> Iterator[Case]:
    """The same ones each time."""
    for number in range(count):
        rng = Random(f"{kind}/{number}/plan")
        turns = [rng.randint(15, 29)] if kind == "loop" else [rng.randint(0, 3) for _ in range(rng.randint(5, 11))]
        yield Case(conversation(f"{kind}/{number}", turns), rng.uniform(0.15, 0.70))


def long_conversation(size: int) -> list[Message]:
    """Turns of 1 to 8 tool steps, about `size` messages of them, at least."""
    rng = Random("long/plan")
    turns: list[int] = []
    messages: list[Message] = []
    while len(messages) < size:
        turns.append(rng.randint(1, 8))
        messages = conversation("long", turns)
    return messages


# --------------------------------------------------------------------------------------------------------- checks


def is_invalid(messages: list[Message]) -> bool:
    """Whether a provider would refuse it: a result without its call right before it, or a call without a result."""
    open_calls: set[str] = set()
    for message in messages:
        if message["role"] == "tool":
            if message["tool_call_id"] not in open_calls:
                return True
            open_calls.remove(message["tool_call_id"])
            continue
        if open_calls:
            return True
        open_calls = {call["id"] for call in message.get("tool_calls") or ()}
    return bool(open_calls)


def has(messages: list[Message], wanted: Message) -> bool:
    """Whether a message of this role with this text is there, word for word."""
    return any(message["role"] == wanted["role"] and message["content"] == wanted["content"] for message in messages)


def newest_user(messages: list[Message]) -> Message:
    return next(message for message in reversed(messages) if message["role"] == "user")
