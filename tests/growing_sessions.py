"""A made-up session of an agent that grows step by step, with outputs as large as real ones; the same for a seed.

    steps(400, seed=1) -> [[messages of step 0], [messages of step 1], ...]

It reads, searches, edits and runs: paths come back, some reads are of edited files, some commands fail and succeed
later. Each call has an id of its own, so that a result can be followed from list to list.
"""

from __future__ import annotations

import json
import math
from random import Random
from typing import Any, Literal

from cases import Message, blocks, has_user_text

Form = Literal["openai", "anthropic"]

TEXT = """the budget of a request is checked before each call and the cache keeps its prefix while older outputs are
replaced by stubs when a batch of them pays for itself and no pair of call and result is split by any cut"""
WORDS = TEXT.split()
SYSTEM = "You are an agent that works on a repository. " + TEXT * 4
# Medians and spreads (of the logarithm) of outputs, in characters, near those of real sessions.
OUTPUTS = {"read_file": (3_000, 1.0), "run_command": (900, 1.3), "search": (1_200, 1.1), "edit_file": (160, 0.5)}
SHARES = {"read_file": 35, "run_command": 35, "search": 15, "edit_file": 15}
LARGEST = 30_000  # characters of an output


class _Writer:
    def __init__(self, seed: object, form: Form) -> None:
        self.rng = Random(f"growing/{seed}")
        self.form = form
        self.calls = 0
        self.paths = [f"src/{self.rng.choice(WORDS)}_{number}.py" for number in range(40)]

    def prose(self, words: int) -> str:
        return " ".join(self.rng.choices(WORDS, k=words))

    def output(self, tool: str, path: str) -> str:
        median, spread = OUTPUTS[tool]
        chars = min(LARGEST, round(median * math.exp(self.rng.gauss(0, spread))))
        lines: list[str] = []
        length = 0
        while length < chars:
            number, word = len(lines) + 1, self.rng.choice(WORDS)
            lines.append(
                {
                    "read_file": f"{number:6d}\t    {word} = self.{self.rng.choice(WORDS)}({number}, {word!r})",
                    "search": f"{path}:{number * 7}:    def {word}_{number}({self.rng.choice(WORDS)}):",
                }.get(tool, f"12:00:{number % 60:02d} INFO {self.prose(6)} {self.rng.randrange(10**6)}")
            )
            length += len(lines[-1]) + 1
        if tool == "run_command":
            lines.append(f"exit code: {int(self.rng.random() < 0.15)}")
        return "\n".join(lines)

    def use(self) -> tuple[str, str, Message, str]:
        """A call and its output: id, name, arguments, text."""
        self.calls += 1
        tool = self.rng.choices(list(SHARES), list(SHARES.values()))[0]
        path = self.rng.choice(self.paths)
        arguments: Message = {
            "read_file": {"path": path},
            "run_command": {"command": f"pytest {path} -q"},
            "search": {"pattern": self.rng.choice(WORDS), "path": path},
            "edit_file": {"path": path, "old": self.prose(8), "new": self.prose(12)},
        }[tool]
        return f"call_{self.calls:05d}", tool, arguments, self.output(tool, path)

    def step(self) -> list[Message]:
        uses = [self.use() for _ in range(self.rng.choices([1, 2, 3], [75, 18, 7])[0])]
        said = self.prose(self.rng.randrange(5, 40))
        if self.form == "anthropic":
            calls = [{"type": "tool_use", "id": id_, "name": name, "input": given} for id_, name, given, _ in uses]
            results = [{"type": "tool_result", "tool_use_id": id_, "content": text} for id_, _, _, text in uses]
            return [
                {"role": "assistant", "content": [{"type": "text", "text": said}, *calls]},
                {"role": "user", "content": results},
            ]
        functions = [
            {"id": id_, "type": "function", "function": {"name": name, "arguments": json.dumps(given)}}
            for id_, name, given, _ in uses
        ]
        tools: list[Message] = [{"role": "tool", "tool_call_id": id_, "content": text} for id_, _, _, text in uses]
        return [{"role": "assistant", "content": said, "tool_calls": functions}, *tools]


def steps(count: int, *, seed: object = 1, turns: int = 1, form: Form = "openai") -> list[list[Message]]:
    """What each of `count` model calls adds: its response and the results of its calls.

    The first one has the system message (OpenAI's form) and the task before it. With more turns, an answer without a
    call and the next user message come between the steps, at even distances; the last step of all has results.
    """
    writer = _Writer(seed, form)
    system: list[Message] = [{"role": "system", "content": SYSTEM}] if form == "openai" else []
    found: list[list[Message]] = []
    starts = {round(turn * count / turns): turn for turn in range(turns)}
    for number in range(count):
        front: list[Message] = []
        if number in starts:
            answer: list[Message] = [{"role": "assistant", "content": writer.prose(60)}] if number else system
            task: Message = {"role": "user", "content": f"Task {starts[number]}: {writer.prose(50)}"}
            front = [*answer, task]
        found.append([*front, *writer.step()])
    return found


def session(count: int, **options: Any) -> list[Message]:
    """All messages of `steps`."""
    return [message for step in steps(count, **options) for message in step]


def user_texts(messages: list[Message]) -> list[str]:
    """What users say, also beside tool results."""
    found = []
    for message in filter(has_user_text, messages):
        content = message["content"]
        text = content if isinstance(content, str) else "\n".join(part["text"] for part in blocks(message, "text"))
        found.append(text)
    return found
