"""Prints what pruning would free of real agent sessions, beside earlier figures: `python tests/freed_shares.py`.

One stretch of a session is what lies between two compactions. Shares are of all characters: texts, reasoning and
arguments of calls. Each rule is computed twice: by the package, and by a few lines of Python that share nothing with
it. The sessions are the optional data.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from cases import Message, as_openai, shared_directory, transcripts

from ctxfast import EstimatorConfig, PrunePolicy, TokenCounter, prune_tool_outputs

STUB = "[Old tool result is not here any longer]"  # 40 characters
COUNTER = TokenCounter.flat(EstimatorConfig(chars_per_token=4.0))

AGENTS = {"Claude": "claude-code", "Codex": "codex-rollout", "OpenCode": "opencode", "pi": "pi"}
OTHERS = ("copilot-cli", "gemini-cli")  # only in the sum of all


@dataclass(frozen=True)
class Rule:
    """What is protected: the newest turns, steps and tokens; nothing happens for at most `least` tokens."""

    name: str
    turns: int = 0
    steps: int = 1  # what the model has not seen yet is never pruned
    tokens: int = 0
    least: int = 0
    published: tuple[float, ...] = ()
    """All agents, Claude, Codex, OpenCode, pi: of 1,112 stretches, of which a part is stored."""


RULES = (
    Rule("protect last 2 user turns", turns=2, published=(0.21, 0.37, 0.46, 0.02, 0.50)),
    Rule("protect last user turn", turns=1, published=(0.27, 0.49, 0.57, 0.02, 0.51)),
    Rule("protect last 40k tokens of tool output", tokens=40_000, published=(0.33, 0.13, 0.54, 0.48, 0.26)),
    Rule("protect last 20k", tokens=20_000, published=(0.54, 0.34, 0.65, 0.72, 0.41)),
    Rule("protect last 10k", tokens=10_000, published=(0.68, 0.48, 0.72, 0.86, 0.47)),
    Rule(
        "2 turns AND 40k AND at least 20k (OpenCode)",
        turns=2,
        tokens=40_000,
        least=20_000,
        published=(0.05, 0.03, 0.28, 0.01, 0.23),
    ),
    Rule("protect last 10 steps", steps=10, published=(0.42, 0.56, 0.68, 0.25, 0.53)),
    Rule("protect last 2 steps", steps=2, published=(0.78, 0.63, 0.74, 0.93, 0.54)),
)


def stretches(folder: Path) -> Iterator[list[Message]]:
    """The sessions of a folder in the loaders' common form, cut at compactions; media are left out."""
    for file in sorted(folder.iterdir()) if folder.is_dir() else ():
        for transcript in transcripts(file):
            stretch: list[Message] = []
            for message in [*transcript, {"role": "boundary"}]:
                if message["role"] != "boundary":
                    stretch.append({**message, "images": []})
                elif stretch:
                    yield stretch
                    stretch = []


def characters(stretch: Sequence[Message]) -> int:
    """All of them."""
    return sum(
        len(message["text"]) + len(message["reasoning"]) + sum(len(call["args"]) for call in message["calls"])
        for message in stretch
    )


def freed_by_package(stretch: Sequence[Message], rule: Rule) -> int:
    """Characters that `prune_tool_outputs` takes away."""
    policy = PrunePolicy(
        protected_turns=rule.turns,
        protected_steps=rule.steps,
        protected_tokens=rule.tokens,
        prune_threshold=rule.least,
        batch="all",
        min_saved=0,
        superseded="off",
        keep_errors="none",
        keep_tools=(),
        keep_paths=(),
        stub=STUB,
    )
    messages = [as_openai(message) for message in stretch]
    report = prune_tool_outputs(messages, policy=policy, prices=None, counter=COUNTER).report
    return sum(edit.characters - len(edit.stub) for edit in report.items)


def freed_by_hand(stretch: Sequence[Message], rule: Rule) -> int:
    """The same, as simply as it can be said."""
    roles = [message["role"] for message in stretch]
    # a user message while calls are still open belongs to their step
    waiting = 0
    turns, steps = [], []
    open_calls: list[str | None] = []
    for index, message in enumerate(stretch):
        if message["role"] == "assistant":
            if index == 0 or roles[index - 1] != "assistant":
                steps.append(index)
            open_calls = [call["id"] for call in message["calls"]]
        elif message["role"] == "tool" and message["call_id"] in open_calls:
            open_calls.remove(message["call_id"])
        elif message["role"] == "user":
            answered_later = {later["call_id"] for later in stretch[index:] if later["role"] == "tool"}
            waiting = sum(call in answered_later for call in open_calls)
            if not waiting:
                turns.append(index)
    starts = [
        marks[-count] if len(marks) >= count else 0
        for marks, count in ((turns, rule.turns), (steps, rule.steps))
        if count
    ]
    total, old = 0, []
    for index in reversed([index for index, role in enumerate(roles) if role == "tool"]):
        tokens = math.ceil(len(stretch[index]["text"]) / 4)
        if rule.turns and index >= starts[0]:
            continue  # the zone begins before the turns
        total += tokens
        if total > rule.tokens and all(index < start for start in starts) and len(stretch[index]["text"]) > len(STUB):
            old.append((len(stretch[index]["text"]), tokens))
    if sum(tokens for _, tokens in old) <= rule.least:
        return 0
    return sum(length - len(STUB) for length, _ in old)


@dataclass
class Shares:
    """What the rules free of some stretches."""

    stretches: int
    characters: int
    tool_characters: int
    by_package: list[int]
    by_hand: list[int]

    @classmethod
    def of(cls, found: Sequence[Sequence[Message]]) -> Shares:
        """Computes both."""
        return cls(
            stretches=len(found),
            characters=sum(map(characters, found)),
            tool_characters=sum(len(message["text"]) for one in found for message in one if message["role"] == "tool"),
            by_package=[sum(freed_by_package(one, rule) for one in found) for rule in RULES],
            by_hand=[sum(freed_by_hand(one, rule) for one in found) for rule in RULES],
        )

    def __add__(self, other: Shares) -> Shares:
        return Shares(
            stretches=self.stretches + other.stretches,
            characters=self.characters + other.characters,
            tool_characters=self.tool_characters + other.tool_characters,
            by_package=[one + two for one, two in zip(self.by_package, other.by_package, strict=True)],
            by_hand=[one + two for one, two in zip(self.by_hand, other.by_hand, strict=True)],
        )


def measure(directory: Path) -> dict[str, Shares]:
    """The shares by agent, those of all agents first."""
    found = {name: Shares.of(list(stretches(directory / folder))) for name, folder in AGENTS.items()}
    everything = Shares(0, 0, 0, [0] * len(RULES), [0] * len(RULES))
    for shares in (*found.values(), *(Shares.of(list(stretches(directory / folder))) for folder in OTHERS)):
        everything += shares
    return {"all": everything, **found}


def main() -> None:
    """Prints the table: stored sessions, by the package; in brackets what was published."""
    directory = shared_directory()
    if directory is None:
        raise SystemExit("no shared data: set CTXFAST_SHARED to their directory")
    found = measure(directory / "transcripts")
    print("| rule |" + "".join(f" {name} ({shares.stretches}) |" for name, shares in found.items()))
    print("|---|" + "--:|" * len(found))
    tools = "".join(f" {shares.tool_characters / shares.characters:.2f} |" for shares in found.values())
    print(f"| tool output in total |{tools}")
    for place, rule in enumerate(RULES):
        cells = [
            f" {shares.by_package[place] / shares.characters:.2f} ({published:.2f}) |"
            for shares, published in zip(found.values(), rule.published, strict=True)
        ]
        print(f"| {rule.name} |{''.join(cells)}")


if __name__ == "__main__":
    main()
