"""Prints the README's tables from one run: `python benches/report.py --sizes 100,1000,10000,100000`.

Medians of interleaved measurements; contenders first have to give the same answer.
"""

from __future__ import annotations

import argparse
import os
import platform
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ctxfast
from benches import floor, imports, plain_loop
from benches.counters import FLAT, REFERENCE
from benches.pruning import COMMITS, DECISIONS, agreed
from benches.timing import interleaved
from benches.transcripts import Message, Shape, Storage, from_json_lines, make_transcript, with_recent_turns
from ctxfast import reference

BUDGET = 8_000
STORAGES: tuple[Storage, ...] = ("ascii", "real", "ucs2")
SHAPES: dict[Shape | None, str] = {None: "mix", "claude": "Claude shape"}
MOST_FOR_REFERENCE = 10_000  # it takes 7 us a message
MOST_COUNTS = 4  # what deciding what to prune may cost, in flat counts of the list

Count = Callable[[list[Message]], int]


def conditions() -> str:
    model = platform.processor() or platform.machine()
    cpuinfo = Path("/proc/cpuinfo")
    if cpuinfo.exists():
        names = [line.partition(":")[2].strip() for line in cpuinfo.read_text().splitlines() if "model name" in line]
        model = f"{names[0]}, {len(names)} logical CPUs" if names else model
    load = f", load {os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else ""
    return f"{platform.python_implementation()} {platform.python_version()}, {platform.system()}, {model}{load}"


def us(seconds: float) -> str:
    return f"{seconds * 1e6:,.{1 if seconds < 1e-4 else 0}f}"


def row(*cells: object) -> None:
    print("|", " | ".join(str(cell) for cell in cells), "|")


def header(*names: str) -> None:
    print()
    row(*names)
    row("---", *["--:"] * (len(names) - 1))


def report_counts(sizes: list[int]) -> None:
    module, reason = floor.load()
    if module is None:
        print(f"\nNo C floor: {reason}.")
    header(
        "flat count, us per call", "ctxfast", "C floor", "Python loop", "reference",
        "ctxfast : floor", "loop : ctxfast", "reference : ctxfast", "ns per message", "Gchar/s",
    )  # fmt: skip

    def line(name: str, messages: list[Message], *, cold: bool = False) -> None:
        """One row, once all agree."""
        contenders: dict[str, Count] = {"ctxfast": FLAT.messages, "loop": plain_loop.count}
        if module:
            contenders["floor"] = module.count
        slow: dict[str, Count] = {}
        if len(messages) <= MOST_FOR_REFERENCE:
            slow["reference"] = REFERENCE.messages
        expected = plain_loop.count(messages)
        for contender, count in (contenders | slow).items():
            assert count(messages) == expected, contender
        times = interleaved({key: partial(count, messages) for key, count in contenders.items()}, cold=cold)
        specification = interleaved({key: partial(count, messages) for key, count in slow.items()}, cold=cold)
        own = times["ctxfast"]
        row(
            f"{len(messages):,} messages, {name}",
            us(own),
            us(times["floor"]) if module else "",
            us(times["loop"]),
            us(specification["reference"]) if slow else "",
            f"{times.ratio('ctxfast', 'floor'):.2f}" if module else "",
            f"{times.ratio('loop', 'ctxfast'):.1f}",
            f"{specification['reference'] / own:.0f}" if slow else "",
            f"{own / len(messages) * 1e9:.0f}",
            f"{characters(messages) / own / 1e9:.1f}",
        )

    for size in sizes:
        for storage in STORAGES:
            messages = make_transcript(size, storage=storage)
            line(storage, messages)
            if storage == "real" and size in (1_000, 10_000):
                line("real, cold caches", messages, cold=True)
                line("real, from JSON lines", from_json_lines(messages))


def report_storages(sizes: list[int]) -> None:
    header("characters counted per second, share of the ASCII rate", *STORAGES[1:])
    for size in sizes:
        for shape, label in SHAPES.items():
            transcripts = {storage: make_transcript(size, storage=storage, shape=shape) for storage in STORAGES}
            times = interleaved({key: partial(FLAT.messages, ms) for key, ms in transcripts.items()})
            chars = {storage: characters(messages) for storage, messages in transcripts.items()}
            shares = [times.ratio("ascii", key) * chars[key] / chars["ascii"] for key in STORAGES[1:]]
            row(f"{size:,} messages, {label}", *(f"{share:.2f}" for share in shares))


def characters(messages: list[Message]) -> int:
    return sum(
        len(message.get("reasoning_content") or "")
        + sum(len(call["function"]["arguments"]) for call in message.get("tool_calls") or ())
        + (
            len(message["content"] or "")
            if not isinstance(message["content"], list)
            else sum(len(part["text"]) for part in message["content"])
        )
        for message in messages
    )


def floor_tail(module: floor.Floor, messages: list[Message]) -> None:
    module.suffix(messages, BUDGET)
    module.newest_user(messages)


def report_tails(sizes: list[int]) -> None:
    module, _ = floor.load()
    header(
        f"fresh tail of {BUDGET:,} tokens, us per call", "ctxfast", "reference",
        "C: suffix and newest user", "kept", "looked back", "ns per message looked back", "C: ns",
    )  # fmt: skip
    for size in sizes:
        near = with_recent_turns(make_transcript(size - 60, storage="real"))
        far = make_transcript(size, storage="real", one_turn=True)
        specification = {}
        tails = {}
        for key, messages in (("near", near), ("far", far)):
            specification[key] = partial(reference.select_fresh_tail, messages, BUDGET, counter=REFERENCE)
            tail = ctxfast.select_fresh_tail(messages, BUDGET, counter=FLAT)
            expected = specification[key]()
            assert (tail.start, tail.pinned, tail.tokens) == (
                expected.start,
                expected.pinned,
                expected.tokens,
            )
            tails[key] = tail
        contenders: dict[str, Callable[[], object]] = {
            "near": partial(ctxfast.select_fresh_tail, near, BUDGET, counter=FLAT),
            "far": partial(ctxfast.select_fresh_tail, far, BUDGET, counter=FLAT),
        }
        if module:
            contenders["C near"] = partial(floor_tail, module, near)
            contenders["C far"] = partial(floor_tail, module, far)
        times = interleaved(contenders)
        for key, name in (("near", "recent turns"), ("far", "one turn")):
            start = tails[key].start
            back = start - min(tails[key].pinned, default=start)
            row(
                f"{size:,} messages, {name}",
                us(times[key]),
                us(interleaved({"": specification[key]})[""]) if size <= MOST_FOR_REFERENCE else "",
                us(times[f"C {key}"]) if module else "",
                f"{size - start:,}",
                f"{back:,}",
                # What looking at one more message costs, where that is most of the time.
                f"{(times[key] - times['near']) / back * 1e9:.1f}" if back > 500 else "",
                f"{(times[f'C {key}'] - times['C near']) / back * 1e9:.1f}" if back > 500 and module else "",
            )


def report_pruning(sizes: list[int]) -> None:
    """What deciding costs, in counts of the same list; and what each stub costs beyond that."""
    module, _ = floor.load()
    header("prune, only to decide, us per call", "ctxfast", "flat count", f"ctxfast : count (goal: {MOST_COUNTS})")
    for size in sizes:
        messages = make_transcript(size, storage="real")
        for scenario in DECISIONS:
            case, _ = agreed(scenario, messages)
            times = interleaved({"prune": partial(case.prune, ctxfast), "count": partial(FLAT.messages, case.messages)})
            row(
                f"{size:,} messages, {scenario}",
                us(times["prune"]),
                us(times["count"]),
                f"{times.ratio('prune', 'count'):.2f}",
            )
    header(
        "prune, writing stubs, us per call", "ctxfast", "flat count", "newlines of the old texts", "stubs",
        f"us per stub beyond {MOST_COUNTS} counts and newlines (goal: 1.5)", "beyond nothing old and newlines",
    )  # fmt: skip
    for size in sizes:
        messages = make_transcript(size, storage="real")
        decision, _ = agreed("nothing old", messages)
        base = interleaved({"decide": partial(decision.prune, ctxfast), "count": partial(FLAT.messages, messages)})
        for scenario in COMMITS:
            case, pruned = agreed(scenario, messages)
            texts: list[str] = [messages[edit.index]["content"] for edit in pruned.report.items]
            newlines = partial(module.newlines if module else plain_loop.newlines, texts)
            assert newlines() == plain_loop.newlines(texts)
            # apart from the others, whom it would leave with other data in their caches
            times = interleaved({"prune": partial(case.prune, ctxfast), "newlines": newlines})
            beyond = times["prune"] - times["newlines"]
            row(
                f"{size:,} messages, {scenario}",
                us(times["prune"]),
                us(base["count"]),
                us(times["newlines"]),
                f"{len(texts):,}",
                f"{(beyond - MOST_COUNTS * base['count']) / len(texts) * 1e6:.2f}",
                f"{(beyond - base['decide']) / len(texts) * 1e6:.2f}",
            )


def report_import() -> None:
    times = interleaved({code: imports.starter(code) for code in ("pass", "import ctxfast")}, seconds=3)
    bare, own = times["pass"], times["import ctxfast"]
    extra = imports.third_party_modules() or "none"
    print(f"\nImport: {(own - bare) * 1e3:.1f} ms on top of a bare start of {bare * 1e3:.1f} ms;", end=" ")
    print(f"third-party modules: {extra}.")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sizes", default="100,1000,10000,100000", help="numbers of messages")
    sizes = [int(size) for size in parser.parse_args().sizes.split(",")]
    print(f"Measured: {conditions()}.")
    report_counts(sizes)
    report_storages([size for size in sizes if size <= 10_000])
    report_tails(sizes)
    report_pruning([size for size in sizes if 1_000 <= size <= 10_000])
    report_import()


if __name__ == "__main__":
    main()
