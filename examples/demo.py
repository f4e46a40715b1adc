"""What ctxfast says about a conversation, and how long its calls take beside the same in plain Python.

    python examples/demo.py [LOG] [--window 128000]

The log is a JSON list of messages, JSON Lines, or a session of Claude Code. Without one, the bundled session of a
coding agent is taken. The report itself is also there without the timings: `python -m ctxfast report LOG`.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Callable
from functools import partial
from pathlib import Path
from time import perf_counter_ns

import ctxfast
from ctxfast import reference
from ctxfast.logs import load
from ctxfast.report import USABLE, describe

BUNDLED = Path(__file__).with_name("session.json")
RUNS = 20


def main() -> None:
    """Read the log, print the report and the timings."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("path", nargs="?", type=Path, default=BUNDLED)
    parser.add_argument("--window", type=int, default=128_000, help="the model's context window in tokens")
    arguments = parser.parse_args()

    messages = load(arguments.path).messages
    print(describe(messages, window=arguments.window))
    print_times(messages, int(arguments.window * USABLE))


def print_times(messages: list[dict[str, object]], usable: int) -> None:
    """The calls behind the report beside the same in plain Python, after a check that the answers are equal."""
    calls: list[tuple[str, tuple[object, ...]]] = [
        ("count_tokens", (messages,)),
        ("turn_starts", (messages,)),
        ("step_starts", (messages,)),
        ("safe_cuts", (messages,)),
        ("find_safe_cut", (messages, len(messages) // 2)),
        ("fresh_tail_budget", (usable,)),
        ("select_fresh_tail", (messages, ctxfast.fresh_tail_budget(usable))),
        ("prune_tool_outputs", (messages,)),
    ]
    heading = f"Microseconds for each call (median of {RUNS} runs)"
    print(f"\n{heading}\n{'-' * len(heading)}")
    print(f"{'call':20}{'ctxfast':>10}{'reference':>12}{'ratio':>9}")
    for name, arguments in calls:
        fast = partial(getattr(ctxfast, name), *arguments)
        plain = partial(getattr(reference, name), *arguments)
        assert comparable(fast()) == comparable(plain()), name
        fast_time, plain_time = microseconds(fast), microseconds(plain)
        print(f"{name:20}{fast_time:10,.1f}{plain_time:12,.1f}{plain_time / fast_time:8,.1f}x")


def comparable(answer: object) -> object:
    """Return an answer in a form that can be compared: those of the reference are of other classes."""
    if isinstance(answer, (ctxfast.Pruned, reference.Pruned)):
        return answer.messages, answer.report.before, answer.report.after, answer.report.tokens_rewritten
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


if __name__ == "__main__":
    main()
