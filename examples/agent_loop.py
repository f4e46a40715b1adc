"""An agent of 500 steps on a window of 32,000 tokens, offline: `python examples/agent_loop.py`.

The model is a script, and the provider a function that counts by itself, answers with usage records, and refuses what
is too large in the words of a real one. The manager never sees more of it than that.
"""

from __future__ import annotations

import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import mkdtemp
from typing import Any

from ctxfast import ContextBudget, ContextManager, OutputStore, validate

Message = dict[str, Any]

SYSTEM: Message = {"role": "system", "content": "You are a careful engineer. " + "Follow the rules of the house. " * 40}
DECISIONS = (
    "Decision: keep Python 3.10 working.",
    "Never touch the files below vendor/.",
    "Use tabs in Makefiles, four spaces elsewhere.",
)


class Refused(Exception):
    """What a provider's library raises: a status and a body."""

    def __init__(self, body: Message) -> None:
        """Of the body of an answer with status 400."""
        super().__init__(f"Error code: 400 - {body}")
        self.status_code, self.body = 400, body


@dataclass
class Provider:
    """A window that is hard, and tokens that are not those of the estimate."""

    window: int = 32_000
    rate: float = 3.2  # characters of JSON for a token
    unseen: int = 1_500  # tokens of what it adds itself
    says_why: bool = True  # whether its refusals have numbers
    requests: list[list[Message]] = field(default_factory=list)
    refusals: int = 0

    def call(self, messages: list[Message], max_tokens: int) -> Message:
        """The usage record, or `Refused`."""
        tokens = self.unseen + round(sum(len(json.dumps(message)) for message in messages) / self.rate)
        if tokens + max_tokens > self.window:
            self.refusals += 1
            text = "Input is too long for requested model."
            if self.says_why:
                text = (
                    f"This model's maximum context length is {self.window} tokens. However, you requested "
                    f"{tokens + max_tokens} tokens ({tokens} in the messages, {max_tokens} in the completion). "
                    "Please reduce the length of the messages or completion."
                )
            raise Refused({"error": {"message": text, "code": "context_length_exceeded" if self.says_why else None}})
        faults = validate(messages)
        if faults:
            raise AssertionError(f"a provider would refuse this: {faults}")
        self.requests.append(messages)
        return {"prompt_tokens": tokens, "completion_tokens": 60, "total_tokens": tokens + 60}


def step(number: int, dice: random.Random) -> list[Message]:
    """What the model and its tools say in one step; now and then it is a lot."""
    path = f"src/module_{dice.randrange(30)}.py"
    name, arguments, line = dice.choice(
        [
            ("read_file", {"path": path}, "    total += price * count  # line {}"),
            ("grep", {"pattern": "price", "path": "src"}, path + ":{}: price = 1"),
            ("bash", {"command": f"pytest -q {path}"}, "test_{} passed"),
            ("edit_file", {"path": path, "old": "a", "new": "b"}, "edited {}"),
            ("ask", {"question": "What about the rest?"}, "I thought about {} more things, and wrote them down."),
        ]
    )
    lines = 1 if name == "edit_file" else int(10 ** dice.uniform(0.5, 2.3))
    if number % 97 == 96:
        lines *= 30
    function = {"name": name, "arguments": json.dumps(arguments)}
    call = {"id": f"call_{number}", "type": "function", "function": function}
    output = "\n".join(line.format(dice.randrange(10_000)) for _ in range(lines))
    said = "I look. " * (1 + number % 25)
    return [
        {"role": "assistant", "content": said, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"call_{number}", "content": output},
    ]


def run(
    steps: int = 500,
    *,
    provider: Provider | None = None,
    summarize: Callable[[str], str] | None = None,
    keep_all: bool = True,
    seed: int = 1,
    announced: int = 40_000,
) -> tuple[ContextManager, Provider, list[Message], Counter[str]]:
    """The loop. `keep_all`: the caller keeps the full history; else it goes on with what was sent.

    `announced` is what the caller takes for the window, which is more than the provider has.
    """
    provider, dice, seen = provider or Provider(), random.Random(seed), Counter[str]()
    manager = ContextManager(
        ContextBudget(announced, max_output_tokens=2_000),
        summarize=summarize,
        store=OutputStore(Path(mkdtemp())),
        on_event=lambda event: seen.update([type(event).__name__]),
    )
    for decision in DECISIONS:
        manager.pin(decision)
    history = [SYSTEM]
    for number in range(steps):
        if number % 60 == 0:
            decision = DECISIONS[number // 60 % len(DECISIONS)]
            history.append(
                {"role": "user", "content": f"Task {number // 60}: make module {number % 7} faster. {decision}"}
            )
        while True:
            prepared = manager.prepare(history)
            try:
                usage = provider.call(prepared, max_tokens=2_000)
            except Refused as error:
                if not manager.handle_error(error):
                    raise
                continue
            break
        manager.record_usage(usage)
        history = history if keep_all else prepared
        history += step(number, dice)
        if number % 60 == 59:
            history.append({"role": "assistant", "content": f"Task {number // 60} is done."})
    return manager, provider, history, seen


def main() -> None:
    """Run it, and say what happened."""
    manager, provider, history, seen = run()
    print(f"{len(history):,} messages; the last request had {len(provider.requests[-1])}")
    print(f"window: {manager.budget.context_window:,}, {manager.budget.source}; {provider.refusals} refused")
    for name, count in seen.most_common():
        print(f"{count:4} {name}")


if __name__ == "__main__":
    main()
