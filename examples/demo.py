"""What ctxfast says about a conversation: where its tokens are, where it can be cut, what a fresh tail keeps.

    python examples/demo.py [transcript.json] [--window 128000]

The transcript is a JSON list of messages in OpenAI's chat form, or an object with such a list as
`messages`. Without one, the bundled session of a coding agent is taken.
"""

from __future__ import annotations

import argparse
import json
import statistics
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from time import perf_counter_ns
from typing import Any

import ctxfast
from ctxfast import reference

Message = dict[str, Any]

BUNDLED = Path(__file__).with_name("session.json")
USABLE = 0.85  # of the window; the rest is a margin for what an estimate misses
RUNS = 20


def main() -> None:
    """Read the transcript and print the four parts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=BUNDLED)
    parser.add_argument("--window", type=int, default=128_000, help="the model's context window in tokens")
    arguments = parser.parse_args()

    messages = load(arguments.path)
    usable = int(arguments.window * USABLE)

    print_tokens(messages)
    print_cuts(messages)
    print_tail(messages, usable)
    print_times(messages, usable)


def load(path: Path) -> list[Message]:
    """Return the messages of a file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    messages: list[Message] = data["messages"] if isinstance(data, dict) else data
    return messages


# ---------------------------------------------------------------------------------- (a) where the tokens are


@dataclass
class ToolUse:
    """What one tool has cost."""

    calls: int = 0
    arguments: int = 0
    results: int = 0


def print_tokens(messages: list[Message]) -> None:
    """Messages and tokens by role, then by tool."""
    counter = ctxfast.TokenCounter.default()
    total = counter.messages(messages)
    heading(f"{len(messages)} messages, about {total:,} tokens")

    by_role: defaultdict[str, list[int]] = defaultdict(list)
    for message in messages:
        by_role[message["role"]].append(counter.message(message))
    print(f"{'role':12}{'messages':>10}{'tokens':>11}{'share':>9}")
    for role, counts in sorted(by_role.items(), key=lambda item: -sum(item[1])):
        print(f"{role:12}{len(counts):10}{sum(counts):11,}{sum(counts) / total:9.1%}")

    print(f"\n{'tool':12}{'calls':>10}{'arguments':>11}{'results':>10}{'share':>9}")
    tools = tokens_by_tool(messages, counter)
    for name, use in sorted(tools.items(), key=lambda item: -item[1].results):
        share = (use.arguments + use.results) / total
        print(f"{name:12}{use.calls:10}{use.arguments:11,}{use.results:10,}{share:9.1%}")


def tokens_by_tool(messages: list[Message], counter: ctxfast.TokenCounter) -> dict[str, ToolUse]:
    """Add up the arguments of each tool's calls and the results that answer them.

    Ids repeat in real sessions: a result answers the nearest earlier call with its id that is still open.
    """
    tools: defaultdict[str, ToolUse] = defaultdict(ToolUse)
    open_calls: defaultdict[str, list[str]] = defaultdict(list)  # id -> names of tools, the nearest call last
    for message in messages:
        calls = message.get("tool_calls") or []
        for call in calls:
            use = tools[call["function"]["name"]]
            use.calls += 1
            use.arguments += counter.text(call["function"]["arguments"])
        for call in reversed(calls):
            open_calls[call["id"]].append(call["function"]["name"])
        if message["role"] == "tool":
            names = open_calls[message["tool_call_id"]]
            tools[names.pop() if names else "(no call)"].results += counter.message(message)
    return tools


# --------------------------------------------------------------------------------- (b) where it can be cut


def print_cuts(messages: list[Message]) -> None:
    """Turns, steps and safe cuts, and what a cut in the middle would hit."""
    cuts = ctxfast.safe_cuts(messages)
    indices = len(messages) + 1
    middle = len(messages) // 2
    verdict = "safe" if middle in cuts else "NOT safe, it parts a call from its result"
    safe = ctxfast.find_safe_cut(messages, middle)

    heading("Where it can be cut")
    row("turns", len(ctxfast.turn_starts(messages)))
    row("steps", len(ctxfast.step_starts(messages)))
    row("safe cuts", f"{len(cuts)} of {indices} indices ({len(cuts) / indices:.0%})")
    row("cut in the middle", f"{describe(messages, middle)}: {verdict}")
    row("find_safe_cut", describe(messages, safe))


def describe(messages: list[Message], index: int) -> str:
    """Say in a few words where an index is."""
    if index == len(messages):
        return f"{index} (the end)"
    calls = len(messages[index].get("tool_calls") or [])
    what = f", {calls} call{'s' if calls > 1 else ''}" if calls else ""
    return f"{index} ({messages[index]['role']}{what})"


# ------------------------------------------------------------------------------- (c) what a fresh tail keeps


def print_tail(messages: list[Message], usable: int) -> None:
    """The newest messages within a budget, and the user messages pinned in front of them."""
    budget = ctxfast.fresh_tail_budget(usable)
    tail = ctxfast.select_fresh_tail(messages, budget)
    newest = messages[tail.start :]
    kept = tail.messages[len(tail.messages) - len(newest) :]
    same = all(ours is theirs for ours, theirs in zip(kept, newest, strict=True))

    heading(f"The fresh tail, if {usable:,} tokens are usable")
    row("budget", f"{budget:,} tokens")
    row("tokens", f"{tail.tokens:,}{', over budget' if tail.over_budget else ''}")
    row("starts at", f"{describe(messages, tail.start)} of {len(messages)}")
    row("turns", tail.turns)
    row("starts inside a turn", "yes" if tail.split_turn else "no")
    for index in tail.pinned:
        row("pinned", f"{index} {text_of(messages[index])[:60]!r}")
    row("word for word", f"{'yes' if same else 'no'}: the last {len(newest)} messages are the same objects")


def text_of(message: Message) -> str:
    """Return the text of a message, with its text parts put together."""
    content = message["content"] or ""
    if isinstance(content, str):
        return content
    return " ".join(part["text"] for part in content if part["type"] == "text")


# ------------------------------------------------------------------------------------- (d) how long it takes


def print_times(messages: list[Message], usable: int) -> None:
    """The calls from above beside the same in plain Python, after a check that the answers are equal."""
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("count_tokens", (messages,)),
        ("turn_starts", (messages,)),
        ("step_starts", (messages,)),
        ("safe_cuts", (messages,)),
        ("find_safe_cut", (messages, len(messages) // 2)),
        ("fresh_tail_budget", (usable,)),
        ("select_fresh_tail", (messages, ctxfast.fresh_tail_budget(usable))),
    ]
    heading(f"Microseconds for each call (median of {RUNS} runs)")
    print(f"{'call':20}{'ctxfast':>10}{'reference':>12}{'ratio':>9}")
    for name, arguments in calls:
        fast = partial(getattr(ctxfast, name), *arguments)
        plain = partial(getattr(reference, name), *arguments)
        assert comparable(fast()) == comparable(plain()), name
        fast_time, plain_time = microseconds(fast), microseconds(plain)
        print(f"{name:20}{fast_time:10,.1f}{plain_time:12,.1f}{plain_time / fast_time:8,.1f}x")


def comparable(answer: object) -> object:
    """Return an answer in a form that can be compared: the two fresh tails are of two classes."""
    if isinstance(answer, (ctxfast.FreshTail, reference.FreshTail)):
        names = ("start", "pinned", "tokens", "turns", "split_turn", "over_budget", "messages")
        return {name: getattr(answer, name) for name in names}
    return answer


def microseconds(call: Callable[[], object]) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(RUNS):
        start = perf_counter_ns()
        call()
        times.append(perf_counter_ns() - start)
    return statistics.median(times) / 1_000


def heading(text: str) -> None:
    """Print a heading with a line under it."""
    print(f"\n{text}\n{'-' * len(text)}")


def row(label: str, value: object) -> None:
    """Print one value with its name."""
    print(f"{label:22}{value}")


if __name__ == "__main__":
    main()
