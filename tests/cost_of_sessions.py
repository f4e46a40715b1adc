"""Prints what real agent sessions cost with pruning, as a share of never: `python tests/cost_of_sessions.py`.

Each session is replayed request by request, the report of one call handed to the next. What is the same as in the
request before is cached and costs the price of reading, the rest that of writing. The sessions are the optional data;
those that would not fit a window of 200,000 tokens are left out.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cases import Message, as_openai, shared_directory
from freed_shares import AGENTS, OTHERS, stretches

from ctxfast import CachePrices, EstimatorConfig, PrunePolicy, Report, TokenCounter, prune_tool_outputs

PRICES = CachePrices()
USABLE = 162_000  # tokens of a window of 200,000: 85 % of it without 8,000 for the answer
FRONT = 15_000  # tokens in front of the messages: system prompt and tools
RATES = {"claude-code": 2.8, "codex-rollout": 3.99, "opencode": 3.99}  # characters per token
POLICIES = ("careful", "default", "thrifty")


@dataclass
class Cost:
    """What sessions cost with and without pruning, in tokens at the full price."""

    pruned: float = 0
    never: float = 0
    requests: int = 0
    breaks: int = 0  # requests in which a part of the cached prefix was changed
    worst: float = 0  # of all sessions

    @property
    def share(self) -> float:
        """With pruning, of the cost without."""
        return self.pruned / self.never


def replay(messages: list[dict[str, Any]], policy: PrunePolicy, counter: TokenCounter) -> Cost:
    """One session."""
    cost = Cost()
    report: Report | None = None
    last: list[Any] = []
    sent = 0  # messages of the request before
    for end, message in enumerate(messages):
        if message["role"] != "assistant" or (end and messages[end - 1]["role"] == "assistant"):
            continue
        pruned = prune_tool_outputs(messages[:end], policy=policy, budget=USABLE, previous=report, counter=counter)
        report = pruned.report
        same = next((i for i, (new, old) in enumerate(zip(pruned.messages, last, strict=False)) if new != old), sent)
        cost.breaks += same < sent
        cost.requests += 1
        cost.pruned += price(pruned.messages, same, counter)
        cost.never += price(messages[:end], sent, counter)
        last, sent = pruned.messages, end
    cost.worst = cost.share if cost.never else 0
    return cost


def price(messages: list[Any], cached: int, counter: TokenCounter) -> float:
    """Of a request whose first messages are cached; of the first request nothing is."""
    read = FRONT + counter.messages(messages[:cached]) if cached else 0
    return PRICES.read * read + PRICES.write * (FRONT + counter.messages(messages) - read)


def measure(directory: Path) -> dict[str, Cost]:
    """All stored sessions of coding agents, by policy."""
    costs = {policy: Cost() for policy in POLICIES}
    for folder in (*AGENTS.values(), *OTHERS):
        rate = EstimatorConfig(chars_per_token=RATES.get(folder, 3.7), message_overhead=0)
        counter = TokenCounter.flat(rate)
        for stretch in stretches(directory / folder):
            messages = conversation(stretch)
            if not any(message["role"] == "tool" for message in messages):
                continue
            if counter.messages(messages) > USABLE - FRONT:
                continue
            for name, total in costs.items():
                cost = replay(messages, getattr(PrunePolicy, name)(), counter)
                total.pruned += cost.pruned
                total.never += cost.never
                total.requests += cost.requests
                total.breaks += cost.breaks
                total.worst = max(total.worst, cost.worst)
    return costs


def conversation(stretch: list[Message]) -> list[dict[str, Any]]:
    """Without system messages: they are in the front."""
    return [as_openai(message) for message in stretch if message["role"] != "system"]


def main() -> None:
    """Prints the table."""
    directory = shared_directory()
    if directory is None:
        raise SystemExit("no shared data: set CTXFAST_SHARED to their directory")
    print("| policy | cost, share of never | worst session | requests | prefix broken |")
    print("|---|--:|--:|--:|--:|")
    for name, cost in measure(directory / "transcripts").items():
        broken = cost.breaks / cost.requests
        print(f"| {name} | {cost.share:.3f} | {cost.worst:.2f} | {cost.requests} | {broken:.1%} |")


if __name__ == "__main__":
    main()
