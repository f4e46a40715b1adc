"""What a session's work will cost: `plan_session` estimates tasks in tokens and says whether there is room for them.

Where it stops: an estimate of what files, calls and answers add to the prompt; nothing is read into a conversation,
nothing is compacted.
"""

from __future__ import annotations

import math
import os
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal, NamedTuple, TypeGuard

import ctxfast
from ctxfast._core import TokenCounter
from ctxfast.budget import ContextBudget, Level
from ctxfast.errors import UsageError
from ctxfast.policy import TOOL_KINDS

__all__ = [
    "Average",
    "Averages",
    "CallCost",
    "Compactable",
    "ReadCost",
    "Session",
    "SessionPlan",
    "Task",
    "TaskCost",
    "Verdict",
    "plan_session",
]

Verdict = Literal["sufficient", "tight", "insufficient", "unknown"]
"""Whether there is room for the tasks; `unknown`: the window is not known."""

LEAST = 5  # calls, answers or turns from which on their average counts
HANDOVER = 3_000  # tokens of a summary with which a new session begins
FACTS = 60  # characters of what an output was about
LISTED = 10  # outputs that are named as what to compact first

# Averages where there is neither a cost log nor a transcript: characters, counted over 987 real sessions of coding
# agents (528 of Claude Code, 438 of OpenCode, 21 of Codex) with 48,827 tool outputs.
CHARACTERS = {
    "read": 9_200,  # 14,178 outputs of Claude Code (5,800) and OpenCode (13,100)
    "command": 3_000,  # 16,456 outputs: Claude Code 1,200, OpenCode 9,800, Codex 3,900
    "search": 1_600,  # 3,471 outputs
    "edit": 280,  # 6,617 outputs
    "agent": 6_300,  # 312 outputs
}
ANY_CALL = 4_040  # of the output of any tool
NO_READ = 1_900  # of the output of any tool that reads no file: 34,649 outputs
ARGUMENTS = 440  # of the arguments of any call
ANSWER = 350  # of text and reasoning of one response
TURN_CALLS, TURN_RESPONSES = 14, 11  # of one turn: 10.6 to 11 responses with 1.26 calls each
SAMPLE = (  # by which characters become tokens of the counter: what tools print
    "  142→    def total(self, items: list[Item]) -> int:\n  143→        return sum(item.price * item.count for item in"
    ' items)\n./src/app/models/order.py:88:    "status": "pending", "retries": 3, "user_id": 41_207\n'
    "FAILED tests/test_order.py::test_total - AssertionError: assert 1250 == 1275\n2026-03-14T09:26:53Z INFO worker"
    " started in 412 ms (pid 7731)\n"
)


# ------------------------------------------------------------------------------------------------------ what comes in


@dataclass(frozen=True)
class Task:
    """A piece of work. What is not said of it is taken from averages."""

    name: str
    reads: tuple[str | os.PathLike[str] | Mapping[str, Any], ...] | int = ()
    """Files that it has to read: paths, which are read whole, or the arguments of `plan_read` as a dict
    (`{"path": "plan.md", "section": "Costs"}`). A number: so many files that are not known yet."""
    calls: int | Mapping[str, int] | None = None
    """Tool calls beside these: how many, or how many of each tool. `None`: as many as a turn usually has."""
    output: int | None = None
    """Tokens that the model writes. `None`: what it usually writes in a turn."""

    def __post_init__(self) -> None:
        """Reject what cannot be meant: `TypeError` or `ValueError`."""
        if not isinstance(self.name, str):
            raise TypeError(f"name: expected a text, got {self.name!r}")
        if isinstance(self.reads, (str, os.PathLike, Mapping)):
            raise TypeError(f"reads: expected a tuple of files or a number, got {self.reads!r}")
        if isinstance(self.reads, int):
            whole("reads", self.reads)
        else:
            object.__setattr__(self, "reads", tuple(self.reads))
        if isinstance(self.calls, Mapping):
            for tool, count in self.calls.items():
                whole(f"calls[{tool!r}]", count)
        elif self.calls is not None:
            whole("calls", self.calls)
        if self.output is not None:
            whole("output", self.output)


def whole(name: str, value: object) -> int:
    """A whole number, 0 or more."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected a whole number, got {value!r}")
    if value < 0:
        raise ValueError(f"{name}: expected 0 or more, got {value!r}")
    return value


def task_of(given: Task | str | Mapping[str, Any]) -> Task:
    """A task from its name or from a dict of its fields."""
    if isinstance(given, Task):
        return given
    if isinstance(given, str):
        return Task(given)
    if not isinstance(given, Mapping):
        raise TypeError(f"tasks: expected a Task, a text or a dict, got `{type(given).__name__}`")
    unknown = sorted(map(str, given.keys() - {"name", "reads", "calls", "output"}))
    if unknown or "name" not in given:
        raise ValueError(f"tasks: expected name, and reads, calls or output; got {', '.join(unknown) or 'no name'}")
    return Task(**given)


# ----------------------------------------------------------------------------------------------------------- averages


class Average(NamedTuple):
    """A mean, and where it comes from."""

    tokens: int
    """Tokens; of `turn_calls` calls."""
    source: str
    """`cost log, 31 calls`; `transcript, 12 calls`; `987 sessions of coding agents`."""


@dataclass(frozen=True)
class Averages:
    """What calls and answers usually cost."""

    read: Average
    """A file that is read: output and arguments."""
    call: Average
    """Any tool call."""
    other_call: Average
    """A tool call that reads no file."""
    output: Average
    """What the model writes in one turn: text and reasoning, without the arguments of calls."""
    turn_calls: Average
    """Calls in one turn."""
    tools: Mapping[str, Average]
    """By the names of tools that the cost log or the transcript has often enough."""
    kinds: Mapping[str, Average]
    """By kinds of tools, for others."""
    not_understood: int = 0
    """Records of the cost log that hold neither a call nor an answer."""

    def of_tool(self, name: str) -> Average:
        """The cost of a call of this tool."""
        from ctxfast.reference.tools import kind_of

        known = self.tools.get(name)
        return known or self.kinds.get(kind_of(name, TOOL_KINDS), self.other_call)


class Costs(NamedTuple):
    """What has been measured: tokens of calls by tool, of answers, and how many turns there were."""

    calls: dict[str, list[int]]
    output: int
    responses: int
    turns: int


def averages_of(
    counter: TokenCounter, messages: Sequence[Any] | None, costs: Sequence[Mapping[str, Any]] | None
) -> Averages:
    """The averages: of the cost log, or else of the transcript, or else of other sessions, each for itself."""
    result = usual(counter)
    if messages is not None:
        result = measured(result, costs_of_messages(messages, counter), "transcript")
    if costs is not None:
        logged, not_understood = costs_of_log(costs)
        result = replace(measured(result, logged, "cost log"), not_understood=not_understood)
    return result


def usual(counter: TokenCounter) -> Averages:
    """What other sessions of agents have cost, in tokens of this counter."""
    source = "987 sessions of coding agents"
    rate = max(counter.text(SAMPLE), 1) / len(SAMPLE)

    def average(characters: int) -> Average:
        return Average(max(1, round(characters * rate)), source)

    kinds = {kind: average(characters + ARGUMENTS) for kind, characters in CHARACTERS.items()}
    return Averages(
        read=kinds["read"],
        call=average(ANY_CALL + ARGUMENTS),
        other_call=average(NO_READ + ARGUMENTS),
        output=average(ANSWER * TURN_RESPONSES),
        turn_calls=Average(TURN_CALLS, source),
        tools={},
        kinds=kinds,
    )


def measured(before: Averages, costs: Costs, source: str) -> Averages:
    """The averages with those that were measured often enough."""
    from ctxfast.reference.tools import kind_of

    by_kind: defaultdict[str, list[int]] = defaultdict(list)
    for tool, tokens in costs.calls.items():
        by_kind[kind_of(tool, TOOL_KINDS)] += tokens
    everything = [tokens for each in by_kind.values() for tokens in each]
    others = [tokens for kind, each in by_kind.items() if kind != "read" for tokens in each]

    def mean(tokens: Sequence[int], old: Average) -> Average:
        if len(tokens) < LEAST:
            return old
        return Average(round(sum(tokens) / len(tokens)), f"{source}, {len(tokens):,} calls")

    tools = {tool: mean(tokens, before.call) for tool, tokens in costs.calls.items() if len(tokens) >= LEAST}
    kinds = {kind: mean(tokens, before.call) for kind, tokens in by_kind.items() if len(tokens) >= LEAST}
    output, turn_calls = before.output, before.turn_calls
    if costs.turns and costs.responses >= LEAST:
        turns = f"{source}, {costs.turns:,} turn{'' if costs.turns == 1 else 's'}"
        output = Average(round(costs.output / costs.turns), turns)
        turn_calls = Average(-(-len(everything) // costs.turns), turns)
    return replace(
        before,
        read=mean(by_kind.get("read", []), before.read),
        call=mean(everything, before.call),
        other_call=mean(others, before.other_call),
        output=output,
        turn_calls=turn_calls,
        tools={**before.tools, **tools},
        kinds={**before.kinds, **kinds},
    )


def costs_of_messages(messages: Sequence[Any], counter: TokenCounter) -> Costs:
    """What the calls and answers of a transcript have cost. Outputs that are stubs now do not count."""
    from ctxfast.reference.pruning import text_of
    from ctxfast.reference.reading import json_text, read_message
    from ctxfast.reference.structure import answered_calls, table
    from ctxfast.reference.stubs import is_stub

    calls: defaultdict[str, list[int]] = defaultdict(list)
    readings = [read_message(message, f"messages[{index}]") for index, message in enumerate(messages)]
    answered = answered_calls(table(messages))
    output = responses = 0
    for index, (message, reading) in enumerate(zip(messages, readings, strict=True)):
        if reading.role == "assistant":
            responses += 1
            arguments = [made if isinstance(made, str) else json_text(made, "arguments") for _, made in reading.called]
            output += max(0, counter.message(message) - sum(map(counter.text, arguments)))
        for place, holder in enumerate(reading.outputs):
            text, attachments = text_of(holder.get("content"))
            if (index, place) not in answered or is_stub(text):
                continue
            caller, at = answered[index, place]
            name, made = readings[caller].called[at]
            tokens = counter.content(holder.get("content") or "") if attachments else counter.text(text)
            words = made if isinstance(made, str) else json_text(made, "arguments")
            calls[str(name)].append(tokens + counter.text(words))
    return Costs(dict(calls), output, responses, len(ctxfast.turn_starts(messages)))


def costs_of_log(costs: Iterable[Mapping[str, Any]]) -> tuple[Costs, int]:
    """What a cost log says, and how many of its records say nothing."""
    calls: defaultdict[str, list[int]] = defaultdict(list)
    output = responses = not_understood = 0
    tasks: set[str] = set()
    for record in costs:
        if not isinstance(record, Mapping):
            raise TypeError(f"costs: expected dicts, got `{type(record).__name__}`")
        tool = next((record[key] for key in ("tool", "tool_name", "name") if isinstance(record.get(key), str)), None)
        tokens = record.get("tokens")
        if tool is not None and is_tokens(tokens):
            calls[tool].append(round(tokens))
        else:
            written = written_by(record)
            if written is None:
                not_understood += 1
                continue
            output += written
            responses += 1
        if record.get("task") is not None:
            tasks.add(str(record["task"]))
    return Costs(dict(calls), output, responses, len(tasks)), not_understood


def is_tokens(value: object) -> TypeGuard[float]:
    """Whether a value is a number of tokens."""
    return isinstance(value, (int, float)) and not isinstance(value, bool) and 0 <= value < 1e12


def written_by(record: Mapping[str, Any]) -> int | None:
    """Tokens that the model has written, as the provider has reported them."""
    try:
        usage = ctxfast.Usage.from_provider(record)
    except UsageError:
        return None
    return usage.output_tokens if usage else None


# ------------------------------------------------------------------------------------------------------------ the plan


class ReadCost(NamedTuple):
    """A file that a task reads."""

    path: str
    """Absolute; empty for a file that is not known yet."""
    part: str
    """What of it: `all`, `section Costs`."""
    tokens: int
    source: str
    """`the file`, `samples of the file`, or where the average comes from."""
    anew: int
    """The same in a new session, in which nothing is known of it."""


class CallCost(NamedTuple):
    """Calls of one tool."""

    tool: str
    """Its name; empty for calls of any."""
    calls: int
    average: int
    """Tokens of one."""
    source: str


@dataclass(frozen=True)
class TaskCost:
    """What a task will add to the prompt. All numbers but `calls` are tokens."""

    task: Task
    reads: tuple[ReadCost, ...]
    calls: tuple[CallCost, ...]
    output: int
    output_source: str

    @property
    def call_tokens(self) -> int:
        """All calls together."""
        return sum(part.calls * part.average for part in self.calls)

    @property
    def tokens(self) -> int:
        """The whole task, if nothing has been read for an earlier one."""
        return self.beside(set())

    def beside(self, known: set[tuple[str, str]], *, anew: bool = False) -> int:
        """The whole task without the files that have been read for an earlier one; `anew`: in a new session."""
        unread = {read for read in self.reads if read.path and (read.path, read.part) not in known}
        reads = [*unread, *(read for read in self.reads if not read.path)]
        return sum(read.anew if anew else read.tokens for read in reads) + self.call_tokens + self.output

    @property
    def files(self) -> set[tuple[str, str]]:
        """The files that it reads, with what of them."""
        return {(read.path, read.part) for read in self.reads if read.path}


@dataclass(frozen=True)
class Compactable:
    """An old tool output that can become a stub."""

    index: int
    """Index of the message that holds it."""
    tool: str
    saved: int
    """Tokens that this frees."""
    reason: str
    """`covered`, `edited`, `aged`, `error`: see `prune_tool_outputs`."""
    facts: str
    """Which file or command it was."""


@dataclass(frozen=True)
class Session:
    """Tasks that are done in one session, in order."""

    tasks: tuple[int, ...]
    """Their places in the list of tasks."""
    tokens: int
    """What they cost."""
    room: int
    """What there is for them."""
    running: bool
    """Whether it is the session that runs now, once it has been compacted; otherwise a new one."""

    @property
    def too_large(self) -> bool:
        """Whether its one task is larger than a new session: it must be made smaller."""
        return self.tokens > self.room


@dataclass(frozen=True)
class SessionPlan:
    """What `plan_session` has found. `str` is the planning block, `details` the rest. Numbers are tokens."""

    budget: ContextBudget
    used: float
    tasks: tuple[TaskCost, ...]
    available: int | None
    """Tokens that can be added now; `None`: the window is not known."""
    averages: Averages
    verdict: Verdict
    compact_first: tuple[Compactable, ...]
    """If it is tight or insufficient: old tool outputs that can go, what is out of date first, then the largest."""
    freed: int
    """What all of that frees."""
    sessions: tuple[Session, ...]
    """If it is insufficient: which tasks fit into this session, once it is compacted, and into new ones."""
    notes: tuple[str, ...]
    """What was assumed."""

    @property
    def reads(self) -> tuple[int, int]:
        """How many files are read, and their tokens; a file that several tasks read counts once."""
        known: dict[tuple[str, str, int], int] = {}
        for number, read in enumerate(read for task in self.tasks for read in task.reads):
            known.setdefault((read.path, read.part, 0 if read.path else number), read.tokens)
        return len(known), sum(known.values())

    @property
    def calls(self) -> tuple[int, int]:
        """How many calls are made beside these, and their tokens."""
        return (
            sum(part.calls for task in self.tasks for part in task.calls),
            sum(task.call_tokens for task in self.tasks),
        )

    @property
    def output(self) -> int:
        """What the model writes."""
        return sum(task.output for task in self.tasks)

    @property
    def tokens(self) -> int:
        """All tasks together."""
        return self.reads[1] + self.calls[1] + self.output

    def as_dict(self) -> dict[str, Any]:
        """The plan as plain data, fit for JSON."""
        tasks = []
        for cost in self.tasks:
            reads, calls = ([row._asdict() for row in rows] for rows in (cost.reads, cost.calls))
            sums = {"output": cost.output, "output_source": cost.output_source, "tokens": cost.tokens}
            tasks.append({"name": cost.task.name, "reads": reads, "calls": calls, **sums})
        return {
            "verdict": self.verdict,
            "available": self.available,
            "used": self.used,
            "tokens": self.tokens,
            "budget": self.budget.to_dict(),
            "tasks": tasks,
            "compact_first": [asdict(output) for output in self.compact_first],
            "freed": self.freed,
            "sessions": [{**asdict(session), "too_large": session.too_large} for session in self.sessions],
            "notes": list(self.notes),
        }

    def __str__(self) -> str:
        """The planning block."""
        window = self.budget.context_window or self.budget.hard
        usage = f"~{self.used:,.0f} tokens (context window not known)"
        if window is not None:
            usage = f"~{100 * self.used / window:.0f}% of context window"
        available = "not known" if self.available is None else f"~{self.available:,} tokens"
        verdict = {
            "insufficient": "insufficient - compact first",
            "unknown": "unknown - the context window is not known",
        }.get(self.verdict, self.verdict)
        return "\n".join(
            [
                "## Token Budget Estimate",
                f"- Current usage: {usage}",
                f"- Available for this task: {available}",
                "- Estimated task cost:",
                f"  - File reads: {product(*self.reads, 'files')}",
                f"  - Tool calls: {product(*self.calls, 'calls')}",
                f"  - Output generation: ~{self.output:,} tokens",
                f"- **Verdict:** {verdict}",
            ]
        )

    def details(self) -> str:
        """The tasks with their sources, what to compact first, the sessions, and what was assumed."""
        lines = []
        for number, cost in enumerate(self.tasks, 1):
            lines.append(f"{number}. {cost.task.name}: ~{cost.tokens:,} tokens")
            for read in cost.reads:
                lines.append(f"   read {read.path or 'a file'} ({read.part}): ~{read.tokens:,} ({read.source})")
            for part in cost.calls:
                calls = f"{part.calls:,} call{'' if part.calls == 1 else 's'}{f' of {part.tool}' if part.tool else ''}"
                lines.append(f"   {calls} x ~{part.average:,} ({part.source})")
            lines.append(f"   output ~{cost.output:,} ({cost.output_source})")
        if self.compact_first:
            lines.append(f"Compact first: frees ~{self.freed:,} tokens")
            for output in self.compact_first[:LISTED]:
                facts = f"{output.tool} {output.facts}".strip()
                lines.append(f"   messages[{output.index}] {facts}: ~{output.saved:,} ({output.reason})")
            if len(self.compact_first) > LISTED:
                lines.append(f"   and {len(self.compact_first) - LISTED:,} more")
        for number, session in enumerate(self.sessions, 1):
            where = "this session, compacted" if session.running else "a new session"
            which = ", ".join(f"{place + 1}. {self.tasks[place].task.name}" for place in session.tasks)
            large = ": too large, make it smaller" if session.too_large else ""
            lines.append(f"Session {number} ({where}): {which}: ~{session.tokens:,} of {session.room:,} tokens{large}")
        return "\n".join([*lines, *(f"note: {note}" for note in self.notes)])


def product(count: int, tokens: int, what: str) -> str:
    """A number of things, their average, and their sum."""
    return f"{count:,} {what} x ~{round(tokens / count) if count else 0:,} tokens = {tokens:,}"


def plan_session(
    budget: ContextBudget,
    used: float,
    tasks: Sequence[Task | str | Mapping[str, Any]],
    *,
    messages: Sequence[Any] | None = None,
    costs: Sequence[Mapping[str, Any]] | str | os.PathLike[str] | None = None,
    log: ctxfast.ReadLog | None = None,
    start: int | None = None,
    counter: TokenCounter | None = None,
) -> SessionPlan:
    """Whether there is room for some tasks beside the `used` tokens of the prompt, and what to do if there is not.

    A task is a name, a `Task` or a dict of its fields. Files that it reads are looked at, as far as that is needed to
    estimate them (a file that several tasks read counts once, what `log` knows and is unchanged at most its summary).
    Calls and answers are taken from averages, each from the first of these that has at least five of them:

    1. `costs`, a cost log: dicts, or the path of a file of JSON Lines. `{"tool": "Read", "tokens": 1200}` is a call
       with its result, a usage record of any provider (`{"output_tokens": 640}`, also as `"usage"`) an answer; `"task"`
       says to which task it belongs.
    2. `messages`, the running transcript.
    3. what 987 real sessions of coding agents had (characters, made tokens by `counter`): 9,200 characters for a
       read, 3,000 for a command, 1,600 for a search, 280 for an edit, 440 for the arguments of a call, 350 for an
       answer, 14 calls and 11 answers in a turn. These are means: sizes are spread widely, half of the outputs
       have less than a third of it.

    The verdict, of `budget.usable`: `"sufficient"`, if the tasks leave the prompt below 75 % of the hard limit, where
    finished work should be summarised, and below 15/17 of usable; `"tight"`, if they fit; else `"insufficient"`;
    `"unknown"`, if the window is not known.

    If it is not sufficient, `compact_first` has the old tool outputs of `messages` that `prune_tool_outputs` would
    replace if there were no cache to pay for. If it is insufficient, `sessions` has the tasks in order, as many as fit
    into this session once it is compacted, then into new ones. A new one has `start` tokens from the beginning
    (default: the system messages, what `used` has beyond the `messages`, and a summary of 3,000 tokens, at most a
    quarter of usable). A task that is larger than a new session is one of its own, which says so (`too_large`).

    `counter` counts the tokens (default: `TokenCounter.default()`). Raises `BudgetError` or `TypeError` for `used` that
    is no number of tokens, `TypeError` or `ValueError` for tasks and records that are none, `OSError` for a cost log or
    a file that cannot be read; a file that does not exist (yet) counts as an average, and `notes` says so.

    >>> from ctxfast import ContextBudget, Task, plan_session
    >>> print(plan_session(ContextBudget(200_000), 90_000, [Task("fix the parser", reads=2, calls={"Bash": 6})]))
    ## Token Budget Estimate
    - Current usage: ~45% of context window
    - Available for this task: ~63,000 tokens
    - Estimated task cost:
      - File reads: 2 files x ~3,260 tokens = 6,520
      - Tool calls: 6 calls x ~1,163 tokens = 6,978
      - Output generation: ~1,302 tokens
    - **Verdict:** sufficient
    """
    if not isinstance(budget, ContextBudget):
        raise TypeError(f"budget: expected a ContextBudget, got `{type(budget).__name__}`")
    available = budget.room(used)
    if isinstance(tasks, (str, Mapping, Task)):
        raise TypeError("tasks: expected a list of tasks, got one task")
    if start is not None:
        whole("start", start)
    counter = counter or TokenCounter.default()
    notes: list[str] = []
    averages = averages_of(counter, messages, records_of(costs, notes))
    if averages.not_understood:
        notes.append(f"{averages.not_understood:,} records of the cost log hold neither a call nor an answer")
    planned = tuple(cost_of(task_of(task), averages, counter, log, notes) for task in tasks)
    plan = SessionPlan(budget, used, planned, available, averages, "unknown", (), 0, (), ())
    plan = replace(plan, verdict=verdict_of(budget, used, plan.tokens))
    if plan.verdict in ("tight", "insufficient"):
        if messages is None:
            notes.append("what to compact first is not known without `messages`")
        else:
            outputs, freed = what_can_go(messages, budget, counter)
            plan = replace(plan, compact_first=outputs, freed=freed)
    if plan.verdict == "insufficient" and budget.usable is not None:
        if start is None:
            start = start_of(budget.usable, used, messages, counter)
            notes.append(f"a new session is assumed to begin with {start:,} tokens")
        now = min(max(0, budget.usable - math.ceil(used) + plan.freed), budget.usable)
        plan = replace(plan, sessions=split(planned, now, max(0, budget.usable - start)))
        for session in plan.sessions:
            if session.too_large:
                notes.append(f"{planned[session.tasks[0]].task.name!r} is larger than a new session")
    return replace(plan, notes=tuple(dict.fromkeys(notes)))


def records_of(
    costs: Sequence[Mapping[str, Any]] | str | os.PathLike[str] | None, notes: list[str]
) -> Sequence[Mapping[str, Any]] | None:
    """The records of a cost log."""
    if isinstance(costs, (str, os.PathLike)):
        from ctxfast.logs.jsonl import read_jsonl

        records, damaged = read_jsonl(Path(costs).read_bytes())
        if damaged:
            line, problem = damaged[0]
            notes.append(f"{len(damaged):,} pieces of the cost log are damaged, the first in line {line:,}: {problem}")
        return records
    if isinstance(costs, Mapping):
        raise TypeError("costs: expected a list of records or the path of a file, got one record")
    return costs


def verdict_of(budget: ContextBudget, used: float, tokens: int) -> Verdict:
    """Whether there is room."""
    usable = budget.usable
    if usable is None:
        return "unknown"
    if used + tokens > usable:
        return "insufficient"
    comfortable = usable * 15 // 17  # as SUMMARIZE, 75 %, lies below URGENT, 85 %
    summarize = budget.starts_at(Level.SUMMARIZE)
    return "sufficient" if used + tokens < min(comfortable, summarize or comfortable) else "tight"


# ------------------------------------------------------------------------------------------------------- cost of tasks


def cost_of(
    task: Task, averages: Averages, counter: TokenCounter, log: ctxfast.ReadLog | None, notes: list[str]
) -> TaskCost:
    """What a task costs."""
    if isinstance(task.reads, int):
        reads = [ReadCost("", "all", *averages.read, averages.read.tokens)] * task.reads
    else:
        reads = [cost_of_read(read, averages, counter, log, notes) for read in task.reads]
    if isinstance(task.calls, Mapping):
        calls = [CallCost(tool, count, *averages.of_tool(tool)) for tool, count in task.calls.items() if count]
    else:
        count, average = task.calls, averages.other_call if reads else averages.call
        if count is None:
            count = max(0, averages.turn_calls.tokens - len(reads))
        calls = [CallCost("", count, *average)] if count else []
    output = averages.output if task.output is None else Average(task.output, "given")
    return TaskCost(task, tuple(reads), tuple(calls), *output)


def cost_of_read(
    read: str | os.PathLike[str] | Mapping[str, Any],
    averages: Averages,
    counter: TokenCounter,
    log: ctxfast.ReadLog | None,
    notes: list[str],
) -> ReadCost:
    """What reading a file costs."""
    settings = dict(read) if isinstance(read, Mapping) else {"path": read}
    path = settings.pop("path", None)
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"reads: expected a path or a dict with one, got {read!r}")
    wanted = next((f"{key} {settings[key]}" for key in ("section", "query") if settings.get(key) is not None), None)
    if wanted is None:
        settings.setdefault("goal", "all")
    part = wanted or str(settings["goal"])
    try:
        plan = ctxfast.plan_read(path, **{"log": log, "counter": counter, **settings})
    except FileNotFoundError:
        notes.append(f"{os.fspath(path)} does not exist: an average file is assumed")
        return ReadCost(os.path.abspath(path), part, *averages.read, averages.read.tokens)
    if not plan.found:
        notes.append(f"{part} was not found in {os.fspath(path)}")
    if plan.kind == "binary":
        notes.append(f"{os.fspath(path)} is no text: nothing is counted for it")
    sampled = plan.goal == "all" and any("samples" in note for note in plan.notes)
    source, anew = "samples of the file" if sampled else "the file", plan.tokens
    if any(step.kind == "reuse" for step in plan.steps):
        source = "read before, unchanged"
        anew = ctxfast.plan_read(path, **{"counter": counter, **settings, "log": None}).tokens
    return ReadCost(plan.path, part, plan.tokens, source, anew)


# ------------------------------------------------------------------------------------------------ if there is no room


def what_can_go(
    messages: Sequence[Any], budget: ContextBudget, counter: TokenCounter
) -> tuple[tuple[Compactable, ...], int]:
    """Old tool outputs that can become stubs, what is out of date first, and what all of them free."""
    from ctxfast.report import clip, facts_of, printable

    report = ctxfast.prune_tool_outputs(messages, budget=budget.usable, prices=None, counter=counter).report
    outputs = []
    for edit in report.items:
        facts = clip(printable(facts_of(edit.stub)), FACTS)
        outputs.append(Compactable(edit.index, printable(edit.tool), edit.before - edit.after, edit.reason, facts))
    outputs.sort(key=lambda output: (output.reason not in ("covered", "edited"), -output.saved, output.index))
    return tuple(outputs), report.saved


def start_of(usable: int, used: float, messages: Sequence[Any] | None, counter: TokenCounter) -> int:
    """Tokens with which a new session begins."""
    fixed = 0
    if messages is not None:
        from ctxfast.reference.reading import read_fields

        roles = [str(read_fields(message, "messages").get("role")) for message in messages]
        leading = next((place for place, role in enumerate(roles) if role not in ("system", "developer")), len(roles))
        beside = max(0, round(used) - counter.messages(messages))
        fixed = counter.messages(messages[:leading]) + beside
    return min(usable, fixed + min(HANDOVER, usable // 4))


def split(tasks: Sequence[TaskCost], now: int, new: int) -> tuple[Session, ...]:
    """The tasks in order, as many in each session as fit into it."""
    sessions: list[Session] = []
    room, running = now, True
    members: list[int] = []
    tokens, files = 0, set[tuple[str, str]]()
    for place, task in enumerate(tasks):
        if tokens + task.beside(files, anew=not running) > room and (members or running):
            if members:
                sessions.append(Session(tuple(members), tokens, room, running))
            room, running, members, tokens, files = new, False, [], 0, set()
        members.append(place)
        tokens += task.beside(files, anew=not running)
        files |= task.files
    if members:
        sessions.append(Session(tuple(members), tokens, room, running))
    return tuple(sessions)
