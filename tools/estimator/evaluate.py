"""How far the estimators are from the true counts, as tables of Markdown.

    python tools/estimator/evaluate.py                                        # the accuracy set
    python tools/estimator/evaluate.py --increments ../shared/transcripts/usage-deltas/deltas.jsonl
    python tools/estimator/evaluate.py --requests ../shared/transcripts/provider-pairs
    python tools/estimator/evaluate.py --page docs/accuracy.md [...]          # writes them into the page

The error of a text is (estimate - true) / true. MAPE is the mean of its absolute value over the texts, bias its mean
with the sign: below zero is too few tokens. `langchain-core`, where installed, is measured too. Needs nothing else
than ctxfast: the true counts are stored (see `accuracy_set.py`).
"""

from __future__ import annotations

import argparse
import json
import math
import re
import statistics
import sys
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import recorded
from accuracy_set import FOLDER, REPETITIONS, read

from ctxfast import EstimatorConfig, TokenCounter, model_info

Estimate = Callable[[str], float]

GROUPS = {
    "English prose": ("english",),
    "Markdown": ("markdown",),
    "agent transcripts": ("agent",),
    "code": ("python", "typescript", "rust", "go", "c", "java", "sql", "shell", "html", "yaml", "minified js", "latex"),
    "tool schemas": ("tool schema",),
    "JSON": ("json pretty", "json compact", "json escaped"),
    "diffs, stack traces": ("diff", "stack trace"),
    "logs, tool output": ("log", "tool output", "grep output", "listing"),
    "tables, XML, config": ("csv", "numbers", "xml", "config"),
    "base64, hex, ids": ("base64", "hex dump", "ids"),
    "European languages": ("german", "french", "spanish", "portuguese", "polish", "turkish", "russian"),
    "Chinese, Japanese, Korean": ("chinese", "japanese", "korean"),
    "Thai, Vietnamese, Hindi": ("thai", "vietnamese", "hindi"),
    "Arabic, Hebrew": ("arabic", "hebrew"),
    "emoji, mixed": ("emoji chat", "mixed"),
    "terminal drawings": ("drawing",),
    "under 100 characters": ("short",),
}
# Files of recorded requests, by who was asked.
PROVIDERS = {"OpenAI": "openai", "Anthropic": "anthropic", "Groq": "groq", "Mistral": "mistral", "Z.ai": "z"}
# What stands in tool outputs and arguments: the seed's rules count it at 2 bytes a token, all other text at 4.
MACHINES = {
    "code",
    "tool schemas",
    "JSON",
    "diffs, stack traces",
    "logs, tool output",
    "tables, XML, config",
    "base64, hex, ids",
    "terminal drawings",
}


@dataclass(frozen=True)
class Text:
    group: str
    text: str
    counts: dict[str, int]  # by family


@dataclass(frozen=True)
class Errors:
    """Of estimates divided by true counts."""

    ratios: Sequence[float]

    @property
    def mape(self) -> float:
        return 100 * statistics.mean(abs(ratio - 1) for ratio in self.ratios)

    @property
    def bias(self) -> float:
        return 100 * (statistics.mean(self.ratios) - 1)

    @property
    def median(self) -> float:
        return statistics.median(self.ratios)

    def quantile(self, share: float) -> float:
        return sorted(self.ratios)[round(share * (len(self.ratios) - 1))]

    def __str__(self) -> str:
        return f"{self.mape:.1f} ({self.bias:+.1f})"


def accuracy_set() -> list[Text]:
    group_of = {category: group for group, categories in GROUPS.items() for category in categories}
    texts = [pair for name in ("written", "generated") for pair in read(FOLDER / f"{name}.txt")]
    counts = stored()["counts"]
    return [
        Text(group_of[category], text, {family: counts[family][i] for family in counts})
        for i, (category, text) in enumerate(texts)
    ]


def stored() -> Any:
    return json.loads((FOLDER / "counts.json").read_bytes())


def estimator(family: Any) -> Estimate:
    return TokenCounter.estimator(family).text


def seed_rules(text: Text) -> float:
    """Code and JSON are known by where they stand: in tool outputs."""
    counter = TokenCounter.flat(replace(EstimatorConfig.seed_rules(), message_overhead=0))
    return counter.message({"role": "tool" if text.group in MACHINES else "user", "content": text.text})


def peers() -> dict[str, Callable[[Text], float]]:
    """Estimates that are the same for every family."""
    found: dict[str, Callable[[Text], float]] = {
        "chars/4": lambda text: math.ceil(len(text.text) / 4),
        "chars/2.5": lambda text: math.ceil(len(text.text) / 2.5),
        "the seed's rules": seed_rules,
    }
    try:
        from langchain_core.messages import HumanMessage
        from langchain_core.messages.utils import count_tokens_approximately
    except ModuleNotFoundError:
        return found
    found["langchain-core"] = lambda text: float(
        count_tokens_approximately([HumanMessage(text.text)], extra_tokens_per_message=0)
    )
    return found


def errors(texts: Iterable[Text], family: str, estimate: Callable[[Text], float]) -> Errors:
    return Errors([estimate(text) / text.counts[family] for text in texts])


def families_table(texts: Sequence[Text]) -> str:
    others = peers()
    head = ["family", "median", "P25", "P75", "**ctxfast**", *others, "exact o200k"]
    rows = []
    for family in stored()["counts"]:
        count = estimator(family)
        ours = errors(texts, family, lambda text, count=count: count(text.text))  # type: ignore[misc]
        beside = [str(errors(texts, family, other)) for other in others.values()]
        exact = errors(texts, family, lambda text: text.counts["o200k"])
        quantiles = (f"{value:.2f}" for value in (ours.median, ours.quantile(0.25), ours.quantile(0.75)))
        rows.append([family, *quantiles, f"**{ours}**", *beside, "-" if family == "o200k" else str(exact)])
    return table(head, rows)


def groups_table(texts: Sequence[Text]) -> str:
    shown = ["o200k", "claude_v3", "claude_v47", "gemma3"]
    rows = []
    for group in GROUPS:
        chosen = [text for text in texts if text.group == group]
        row = [group, str(len(chosen))]
        for family in shown:
            count = estimator(family)
            row.append(str(errors(chosen, family, lambda text, count=count: count(text.text))))  # type: ignore[misc]
        row += [str(errors(chosen, family, lambda text: math.ceil(len(text.text) / 4))) for family in shown[:3:2]]
        row.append(str(errors(chosen, "claude_v47", lambda text: text.counts["o200k"])))
        rows.append(row)
    return table(["", "texts", *shown, "chars/4 on o200k", "chars/4 on claude_v47", "exact o200k on claude_v47"], rows)


def repetitions_table() -> str:
    counts = stored()["repetitions"]
    shown = ["o200k", "claude_v47", "gemma3"]
    rows = [
        [name, *(f"{counts[family][i]:,} / {estimator(family)(text):,}" for family in shown)]
        for i, (name, text) in enumerate(REPETITIONS.items())
    ]
    return table(["true / estimate", *shown], rows)


def generation(model: str, *prefixes: str) -> tuple[tuple[str, ...], str, int]:
    """How the names of these models begin, their family, and the tokens of a tool call with its result beside their
    texts (see docs/accuracy.md), as the package has them."""
    info = model_info(model)
    return prefixes, info.family, info.frame.per_result


GENERATIONS = {
    "GPT-5": generation("gpt-5", "gpt-5"),
    "Claude 4.5, 4.6": generation("claude-opus-4-6", "claude-opus-4", "claude-sonnet-4"),
    "Claude Opus 5": generation("claude-opus-5", "claude-opus-5"),
    "Claude Sonnet 5": generation("claude-sonnet-5", "claude-sonnet-5"),
    "Claude Fable 5": generation("claude-fable-5", "claude-fable-5"),
}


def texts_of(row: dict[str, Any]) -> list[str]:
    """What was added to a prompt between two requests: a response, if it counts, and its tool outputs."""
    added = [result["text"] for result in row["results"]]
    if "assistant" in row["tokens_of"]:
        added.append(row["assistant_text"])
        for call in row["assistant_calls"]:
            added += [call["name"], call["args"] if isinstance(call["args"], str) else json.dumps(call["args"])]
    return added


def increments(rows: Iterable[dict[str, Any]], generation: str, estimate: Estimate, frame: int) -> Errors:
    """What providers counted, as differences of two usage records, against the estimate of the text between them."""
    prefixes = GENERATIONS[generation][0]
    return Errors([
        (sum(map(estimate, texts_of(row))) + frame * len(row["results"])) / row["tokens"]
        for row in rows
        if row["model"].startswith(prefixes)
    ])  # fmt: skip


def increments_table(file: Path) -> str:
    rows = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    lines = []
    for name, (_, family, frame) in GENERATIONS.items():
        ours = increments(rows, name, estimator(family), frame)
        beside = [
            f"{found.median:.2f}"
            for found in (
                increments(rows, name, estimator(family), 0),
                increments(rows, name, estimator("o200k"), 0),
                increments(rows, name, lambda text: len(text) / 4, 0),
            )
        ]
        lines.append([name, str(len(ours.ratios)), family, str(frame), *quartiles(ours), *beside])
    _, _, frame = GENERATIONS["GPT-5"]
    count = TokenCounter.for_model("gpt-5").text
    exact, bare = (increments(rows, "GPT-5", count, tokens) for tokens in (frame, 0))
    cells = (str(len(exact.ratios)), "o200k_base", str(frame), *quartiles(exact), f"{bare.median:.2f}", "", "")
    lines.insert(1, ["GPT-5, exact", *cells])
    head = ["models", "increments", "family", "frame", "median", "P25", "P75"]
    return table([*head, "median without frame", "o200k estimate", "chars/4"], lines)


def quartiles(errors: Errors) -> Iterator[str]:
    """The median first."""
    return (f"{value:.2f}" for value in (errors.median, errors.quantile(0.25), errors.quantile(0.75)))


def requests_table(folder: Path) -> str:
    lines = []
    for name, file in PROVIDERS.items():
        requests = list(recorded.read(folder / f"{file}.jsonl"))
        texts = [request for request in requests if not request.has_media]
        with_tools = [abs(request.error()) for request in texts if request.body.get("tools")]
        without = [abs(request.error()) for request in texts if not request.body.get("tools")]
        images = [abs(request.error()) for request in requests if request.images]
        lines.append([name, *(cell for errors in (without, with_tools, images) for cell in median_of(errors))])
    return table(["requests to", "plain", "error", "with tools", "error", "with images", "error"], lines)


def median_of(errors: Sequence[float]) -> tuple[str, str]:
    """How many there are, and the median in per cent."""
    return str(len(errors)), f"{100 * statistics.median(errors):.1f}" if errors else "-"


def table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def main() -> None:
    parser = argparse.ArgumentParser(description="Error tables of the estimators.")
    parser.add_argument("--increments", type=Path, help="differences of usage records, one a line")
    parser.add_argument("--requests", type=Path, help="a folder of recorded requests with their usage")
    parser.add_argument("--page", type=Path, help="a page of Markdown whose tables are written anew")
    options = parser.parse_args()
    texts = accuracy_set()
    tables = {
        "families": families_table(texts),
        "groups": groups_table(texts),
        "repetitions": repetitions_table(),
    }
    if options.increments is not None:
        tables["increments"] = increments_table(options.increments)
    if options.requests is not None:
        tables["requests"] = requests_table(options.requests)
    if options.page is None:
        sys.stdout.write("\n\n".join(f"{name}\n\n{text}" for name, text in tables.items()) + "\n")
        return
    if "langchain-core" not in peers():
        raise ModuleNotFoundError("the page compares with langchain-core: install it first")
    page = options.page.read_text(encoding="utf-8")
    for name, text in tables.items():
        place = re.compile(rf"(<!-- table: {name} -->\n)(?:\|.*\n)*(?=<!-- end -->)")
        page, found = place.subn(lambda match, text=text: f"{match[1]}{text}\n", page)  # type: ignore[misc]
        if not found:
            raise ValueError(f"{options.page} has no place for the table {name!r}")
    options.page.write_text(page, encoding="utf-8")


if __name__ == "__main__":
    main()
