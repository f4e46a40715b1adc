"""The command line: `python -m ctxfast report FILE` shows what fills the context of a logged session.

Exit codes: 0, fine; 2, wrong usage or a file that cannot be read, with one line on the standard error.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Sequence
from typing import Any

import ctxfast
from ctxfast.logs import READERS, Log, load
from ctxfast.models import not_in_table
from ctxfast.report import Overview, describe, printable

__all__ = ["main"]

SHOWN_DAMAGE = 3  # damaged pieces that are named
SHOWN_KINDS = 6  # kinds of skipped records that are named


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    options = make_parser().parse_args(arguments)
    try:
        text = report(options)
    except OSError as error:
        return fail(f"cannot read {options.file}: {error.strerror or error}")
    except (ctxfast.CtxfastError, MemoryError, ValueError) as error:
        return fail(str(error) or type(error).__name__)
    return write(text)


def make_parser() -> argparse.ArgumentParser:
    """The options."""
    parser = argparse.ArgumentParser(
        prog="python -m ctxfast", description="Look into the sessions of LLM agents.", allow_abbrev=False
    )
    parser.add_argument("--version", action="version", version=f"ctxfast {ctxfast.__version__}")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    command = commands.add_parser(
        "report",
        help="what fills the context of a logged session",
        description="Show where the tokens of a logged session are, what pruning frees, where it can be "
        "cut and what a fresh tail keeps. "
        "Of a session that was compacted, it shows what is still sent: what came after the last compaction.",
        allow_abbrev=False,
    )
    command.add_argument(
        "file",
        metavar="FILE",
        help="a session of Claude Code, the output of `claude -p --output-format stream-json`, or chat messages in "
        "JSON or JSON Lines",
    )
    command.add_argument(
        "--model", metavar="NAME", help="count as this model does, in its window: claude-sonnet-4-5 (else: as GPT-4o)"
    )
    command.add_argument(
        "--window", type=positive, metavar="N", help="the context window in tokens (the model's, or 128000)"
    )
    command.add_argument("--all", action="store_true", help="show what came before the last compaction too")
    command.add_argument("--index", type=int, metavar="N", help="which conversation of a file with several, from 0")
    command.add_argument(
        "--format", choices=("auto", *READERS), default="auto", help="the format of the file (auto: look at it)"
    )
    command.add_argument("--json", action="store_true", help="print JSON")
    return parser


def positive(text: str) -> int:
    """A number of tokens on the command line."""
    try:
        number = int(text.replace("_", "").replace(",", ""))
    except ValueError:
        number = 0
    if number < 2:
        raise argparse.ArgumentTypeError(f"expected a number of tokens, 2 or more, got {text!r}")
    return number


def report(options: argparse.Namespace) -> str:
    """The text of the command `report`."""
    log = load(options.file, options.format, index=options.index)
    messages = log.history if options.all else log.messages
    counter, window = ctxfast.TokenCounter.default(), 128_000
    if options.model is not None:
        model = ctxfast.model_info(options.model)
        if not model.known:
            raise ValueError(not_in_table(model))
        counter, window = ctxfast.TokenCounter.for_model(model), model.context_window or window
    described = describe(messages, counter=counter, window=options.window or window)
    if options.json:
        return json.dumps(as_dict(options.file, log, described, counter), indent=2)
    return "\n".join([*head(options.file, log, len(messages), counter), "", str(described)])


def as_dict(file: str, log: Log, described: Overview, counter: ctxfast.TokenCounter) -> dict[str, Any]:
    """The report and the facts about the file, for programs."""
    return {
        "file": file,
        "form": log.form,
        "messages_in_file": len(log.history),
        "compactions": log.compactions,
        "damaged": [damage._asdict() for damage in log.damaged],
        "glued": log.glued,
        "skipped": log.skipped,
        "apart": apart(log, counter),
        "report": described.as_dict(),
    }


def head(file: str, log: Log, shown: int, counter: ctxfast.TokenCounter) -> Iterator[str]:
    """The facts about the file, one in each line."""
    yield f"{printable(file)} ({log.form})"
    if log.compactions:
        count = len(log.compactions)
        times = "once" if count == 1 else f"{count} times"
        if shown < len(log.history):
            yield f"compacted {times}: {shown} of {len(log.history)} messages are still sent; --all shows all"
        else:
            yield f"compacted {times}, before message {', '.join(map(str, log.compactions))} of {shown}"
    counted = [f"{name} {tokens:,} tokens" for name, tokens in apart(log, counter).items()]
    if counted:
        yield f"not in the list: {', '.join(counted)}"
    if log.damaged:
        pieces = [f"line {line}: {problem}" for line, problem in log.damaged[:SHOWN_DAMAGE]]
        more = len(log.damaged) - len(pieces)
        yield f"damaged: {'; '.join(pieces)}{f'; and {more:,} more' if more else ''}"
    if log.glued:
        numbers = ", ".join(map(str, log.glued[:SHOWN_DAMAGE]))
        more = len(log.glued) - SHOWN_DAMAGE
        yield f"several records in one line, all read: line {numbers}{f' and {more:,} more' if more > 0 else ''}"
    if log.skipped:
        kinds = [f"{number:,} {printable(kind)}" for kind, number in list(log.skipped.items())[:SHOWN_KINDS]]
        more = sum(list(log.skipped.values())[SHOWN_KINDS:])
        yield f"skipped, no messages: {', '.join(kinds)}{f', {more:,} other' if more else ''}"


def apart(log: Log, counter: ctxfast.TokenCounter) -> dict[str, int]:
    """Tokens of what the log keeps beside the messages."""
    tokens = {}
    if log.system:
        tokens["system prompt"] = counter.content(log.system)
    if log.tools:
        tokens["tools"] = counter.tools(log.tools)
    return tokens


def write(text: str) -> int:
    """Print the text; a reader that has had enough (`| head`) is no error."""
    if sys.stdout is None:
        return 0
    try:
        if hasattr(sys.stdout, "reconfigure"):
            sys.stdout.reconfigure(errors="backslashreplace")  # a terminal that cannot show a character
        print(text)
        sys.stdout.flush()
    except OSError as error:
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # else the interpreter complains at its end
        return 0 if isinstance(error, BrokenPipeError) else fail(f"cannot write: {error.strerror or error}")
    return 0


def fail(message: str) -> int:
    """Say in one line what is wrong."""
    line = " ".join(message.split())
    print(f"ctxfast: {line}", file=sys.stderr)
    return 2
