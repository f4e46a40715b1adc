"""What a conversation consists of: where its tokens are, where it can be cut, what a fresh tail keeps.

`describe` looks, and what it returns is plain data: frozen dataclasses of numbers and short texts that hold on to no
message. `str` makes text of it, `as_dict` what JSON can hold.

A section of the report is a dataclass with `lines`, a field of `Overview`, the function that fills it and its place in
`Overview.sections`.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NamedTuple

import ctxfast
from ctxfast.reference.reading import json_text, pairing_key, read_fields

__all__ = [
    "Cuts",
    "Fault",
    "Freed",
    "Outdated",
    "Output",
    "Overview",
    "Pinned",
    "Place",
    "Pruning",
    "RoleUse",
    "Tail",
    "ToolUse",
    "describe",
]

USABLE = 0.85  # of the window; the rest is a margin for what an estimate misses
LARGEST = 5  # tool outputs that are listed, of all and of those that are out of date
FAULTS = 8  # faults that are listed
CLIP = 60  # characters of a text that are shown
NO_CALL = "(no call)"  # the tool of a result whose call is not in the list
SERVER_CALLS = ("server_tool_use", "mcp_tool_use")  # the provider answers these in the same message

Fields = dict[str, Any]


# ------------------------------------------------------------------------------------------------ the plain data


@dataclass(frozen=True)
class RoleUse:
    """What the messages of one role cost."""

    role: str
    """The role; `user (results)` are user messages that hold tool results, as Anthropic's form has them."""
    messages: int
    tokens: int


@dataclass(frozen=True)
class ToolUse:
    """What one tool has cost."""

    tool: str
    """Its name; `(no call)` for results whose call is not in the list."""
    calls: int
    arguments: int
    """Tokens of the arguments of all calls."""
    results: int
    """Tokens of all results."""
    largest: int
    """Tokens of the largest result."""


@dataclass(frozen=True)
class Output:
    """One tool output."""

    index: int
    """Index of the message that holds it."""
    tool: str
    tokens: int
    arguments: str
    """The first words of the arguments of its call."""


@dataclass(frozen=True)
class Outdated:
    """A read that no longer says what is in the file, or that a later one has said again."""

    index: int
    """Index of the message that holds it."""
    tool: str
    tokens: int
    reason: str
    """`covered`: a later read has all of its lines; `edited`: the file was changed later."""
    facts: str
    """Which file, which lines, how large."""


@dataclass(frozen=True)
class Freed:
    """What replacing outputs for one reason would save."""

    reason: str
    """`aged`, `covered`, `edited`, `error`: see `ctxfast.prune_tool_outputs`."""
    outputs: int
    saved: int
    """Tokens."""


@dataclass(frozen=True)
class Pruning:
    """What `prune_tool_outputs` frees, with its defaults."""

    before: int
    """Tokens of the list."""
    after: int
    """Tokens after pruning now: the same if that does not pay yet."""
    outputs: int
    """Outputs that would be replaced now."""
    earliest_changed_index: int | None
    """Index of the first message that would change."""
    tokens_rewritten: int
    """Tokens behind it that would have to be written into the provider's cache again."""
    blocked_by: str | None
    """What is in the way, if nothing would be replaced."""
    freed: tuple[Freed, ...]
    """What would be saved without a cache, where every saving pays, by reason."""
    outdated: tuple[Outdated, ...]
    """The largest reads that are out of date, the largest first, protected ones included."""

    def lines(self) -> Iterator[str]:
        """The section as text."""
        yield from heading("What pruning old tool outputs frees")
        yield row("before", f"{self.before:,} tokens")
        if self.earliest_changed_index is None:
            yield row("now", f"nothing{f' ({self.blocked_by})' if self.blocked_by else ''}")
        else:
            share = (self.before - self.after) / self.before
            yield row("now", f"{self.after:,} tokens ({share:.0%} less), {self.outputs} outputs replaced")
            place = f"messages[{self.earliest_changed_index}]"
            yield row("changed from", f"{place} on: {self.tokens_rewritten:,} tokens to be cached again")
        if self.freed:
            yield f"{'reason':22}{'outputs':>10}{'saved':>11}"
        for freed in self.freed:
            yield f"{freed.reason:22}{freed.outputs:10,}{freed.saved:11,}"
        if self.outdated:
            width = column([output.tool for output in self.outdated])
            yield ""
            yield from heading("The largest reads that are out of date")
            yield f"{'tool':{width}}{'message':>10}{'tokens':>11}  {'why':9}what"
            for output in self.outdated:
                name = f"{clip(output.tool, width - 1):{width}}"
                yield f"{name}{output.index:10}{output.tokens:11,}  {output.reason:9}{output.facts}".rstrip()


@dataclass(frozen=True)
class Fault:
    """Something that a provider would refuse."""

    index: int
    """Index of the message."""
    code: str
    """The stable code of `validate`."""
    detail: str
    """The same as a sentence."""


@dataclass(frozen=True)
class Place:
    """An index in the list, and what is there."""

    index: int
    role: str | None
    """Role of the message there; `None`: the end of the list."""
    calls: int
    """Number of tool calls in it."""

    def __str__(self) -> str:
        """The place in a few words."""
        if self.role is None:
            return f"{self.index} (the end)"
        calls = f", {self.calls} call{'s' if self.calls > 1 else ''}" if self.calls else ""
        return f"{self.index} ({self.role}{calls})"


@dataclass(frozen=True)
class Cuts:
    """Where the list can be cut."""

    turns: int
    steps: int
    safe: int
    """How many of the indices are safe cuts."""
    indices: int
    """How many indices there are: one more than messages."""
    middle: Place
    """Where a cut in the middle would be."""
    middle_is_safe: bool
    """Whether it parts no call from its result."""
    found: Place
    """What `find_safe_cut` gives instead."""

    def lines(self) -> Iterator[str]:
        """The section as text."""
        verdict = "safe" if self.middle_is_safe else "NOT safe, it parts a call from its result"
        yield from heading("Where it can be cut")
        yield row("turns", self.turns)
        yield row("steps", self.steps)
        yield row("safe cuts", f"{self.safe} of {self.indices} indices ({self.safe / self.indices:.0%})")
        yield row("cut in the middle", f"{self.middle}: {verdict}")
        yield row("find_safe_cut", self.found)


@dataclass(frozen=True)
class Pinned:
    """A user message that is kept in front of a fresh tail."""

    index: int
    text: str
    """How it begins."""


@dataclass(frozen=True)
class Tail:
    """What `select_fresh_tail` keeps."""

    window: int
    """The model's context window in tokens."""
    usable: int
    """Tokens of it that are taken as usable: 85 %."""
    budget: int
    """Tokens that the tail may have."""
    tokens: int
    """Tokens that it has."""
    over_budget: bool
    start: Place
    messages: int
    """How many messages it keeps, pinned and leading system messages not counted."""
    turns: int
    split_turn: bool
    """Whether it starts inside a turn."""
    pinned: tuple[Pinned, ...]

    def lines(self) -> Iterator[str]:
        """The section as text."""
        yield from heading(f"The fresh tail, if {self.usable:,} tokens are usable")
        yield row("budget", f"{self.budget:,} tokens")
        yield row("tokens", f"{self.tokens:,}{', over budget' if self.over_budget else ''}")
        yield row("starts at", f"{self.start} of {self.start.index + self.messages}")
        yield row("turns", self.turns)
        yield row("starts inside a turn", "yes" if self.split_turn else "no")
        for pinned in self.pinned:
            yield row("pinned", f"{pinned.index} {pinned.text!r}")
        yield row("word for word", f"the last {self.messages} messages")


@dataclass(frozen=True)
class Overview:
    """What a conversation consists of. All tokens are those of one counter."""

    messages: int
    tokens: int
    roles: tuple[RoleUse, ...]
    """The roles, the most expensive first."""
    tools: tuple[ToolUse, ...]
    """The tools, those with the most result tokens first."""
    largest: tuple[Output, ...]
    """The largest tool outputs, the largest first."""
    faults: tuple[Fault, ...]
    """What a provider would refuse (`validate`), in the order of the messages."""
    pruning: Pruning
    cuts: Cuts
    tail: Tail | None
    """`None` if no window was given."""

    def as_dict(self) -> dict[str, Any]:
        """The same as dicts, tuples, strings and numbers."""
        return asdict(self)

    def __str__(self) -> str:
        """The same as text, columns aligned."""
        return "\n\n".join("\n".join(lines) for section in self.sections() if (lines := list(section)))

    def sections(self) -> Iterator[Iterator[str]]:
        """The sections, in the order in which they are shown."""
        yield self.role_lines()
        yield self.tool_lines()
        yield self.largest_lines()
        yield self.fault_lines()
        if self.tools:
            yield self.pruning.lines()
        yield self.cuts.lines()
        if self.tail is not None:
            yield self.tail.lines()

    def role_lines(self) -> Iterator[str]:
        """Messages and tokens by role."""
        width = column([use.role for use in self.roles])
        yield from heading(f"{self.messages} messages, about {self.tokens:,} tokens")
        yield f"{'role':{width}}{'messages':>10}{'tokens':>11}{'share':>9}"
        for use in self.roles:
            yield f"{use.role:{width}}{use.messages:10}{use.tokens:11,}{self.share(use.tokens)}"

    def tool_lines(self) -> Iterator[str]:
        """Calls and tokens by tool."""
        if not self.tools:
            return
        width = column([use.tool for use in self.tools])
        yield f"{'tool':{width}}{'calls':>10}{'arguments':>11}{'results':>10}{'largest':>10}{'share':>9}"
        for use in self.tools:
            numbers = f"{use.calls:10}{use.arguments:11,}{use.results:10,}{use.largest:10,}"
            yield f"{clip(use.tool, width - 1):{width}}{numbers}{self.share(use.arguments + use.results)}"

    def largest_lines(self) -> Iterator[str]:
        """The largest tool outputs."""
        if not self.largest:
            return
        width = column([output.tool for output in self.largest])
        yield from heading("The largest tool outputs")
        yield f"{'tool':{width}}{'message':>10}{'tokens':>11}  arguments"
        for output in self.largest:
            name = f"{clip(output.tool, width - 1):{width}}"
            yield f"{name}{output.index:10}{output.tokens:11,}  {output.arguments}".rstrip()

    def fault_lines(self) -> Iterator[str]:
        """The first faults, and how many more there are."""
        if not self.faults:
            return
        yield from heading("What a provider would refuse")
        yield f"{'message':>7}  {'code':28}what is wrong"
        for fault in self.faults[:FAULTS]:
            yield f"{fault.index:7,}  {fault.code:28}{clip(fault.detail, CLIP)}"
        if len(self.faults) > FAULTS:
            yield f"{'':7}  and {len(self.faults) - FAULTS:,} more"

    def share(self, tokens: int) -> str:
        """A number of tokens as a share of all."""
        parts = sum(use.tokens for use in self.roles)  # less than the total by its margin
        return f"{tokens / parts if parts else 0:9.1%}"


# ------------------------------------------------------------------------------------------------ looking


def describe(
    messages: Sequence[Any], *, counter: ctxfast.TokenCounter | None = None, window: int | None = None
) -> Overview:
    """Look into a conversation: tokens by role and tool, the largest outputs, faults, safe cuts, the fresh tail.

    `counter` counts the tokens (default: `TokenCounter.default()`). `window` is the model's context window in tokens;
    without one there is no tail in the report. Raises `MessageTypeError` or `MessageValueError` for a message that
    cannot be read, `BudgetError` for a window that is no number of tokens.
    """
    counter = counter or ctxfast.TokenCounter.default()
    total = counter.messages(messages)  # first of all: its errors say which message cannot be read
    read = [read_fields(message, f"messages[{index}]") for index, message in enumerate(messages)]
    counts = [counter.message(message) for message in messages]
    tools, outputs = use_of_tools(messages, read, counts, counter)
    return Overview(
        messages=len(messages),
        tokens=total,
        roles=use_by_role(read, counts),
        tools=tools,
        largest=outputs,
        faults=tuple(Fault(p.index, p.code, printable(p.detail)) for p in ctxfast.validate(messages)),
        pruning=look_at_pruning(messages, counter, window),
        cuts=look_for_cuts(messages, read),
        tail=None if window is None else look_at_tail(messages, read, counter, window),
    )


def use_by_role(read: Sequence[Fields], counts: Sequence[int]) -> tuple[RoleUse, ...]:
    """Messages and tokens of each role."""
    by_role: defaultdict[str, list[int]] = defaultdict(list)
    for fields, tokens in zip(read, counts, strict=True):
        role = printable(str(fields.get("role")))
        holds_results = role == "user" and any(is_result(block) for block in blocks_of(fields))
        by_role["user (results)" if holds_results else role].append(tokens)
    uses = [RoleUse(role, len(tokens), sum(tokens)) for role, tokens in by_role.items()]
    return tuple(sorted(uses, key=lambda use: -use.tokens))


class Call(NamedTuple):
    """A tool call, as far as the report needs it."""

    key: str | None
    tool: str
    arguments: str


class Result(NamedTuple):
    """A tool result: the id of its call, its tokens, and the tool's name where it says it itself."""

    key: str | None
    tokens: int
    tool: str | None


def use_of_tools(
    messages: Sequence[Any], read: Sequence[Fields], counts: Sequence[int], counter: ctxfast.TokenCounter
) -> tuple[tuple[ToolUse, ...], tuple[Output, ...]]:
    """What each tool has cost, and the largest outputs.

    Ids repeat in real sessions: a result answers the nearest earlier call with its id that is still open; within one
    message equal ids match in order.
    """
    calls: defaultdict[str, list[int]] = defaultdict(list)  # tool -> tokens of the arguments
    results: defaultdict[str, list[int]] = defaultdict(list)  # tool -> tokens of the results
    open_calls: defaultdict[str | None, list[Call]] = defaultdict(list)  # id -> calls, the next to be answered last
    outputs: list[Output] = []
    for index, fields in enumerate(read):
        made = calls_of(fields, f"messages[{index}]")
        for call in made:
            calls[call.tool].append(counter.text(call.arguments))
        for call in reversed(made):
            open_calls[call.key].append(call)
        for result in results_of(fields, counts[index], counter):
            waiting = open_calls[result.key]
            answered = waiting.pop() if waiting else Call(None, result.tool or NO_CALL, "")
            results[answered.tool].append(result.tokens)
            outputs.append(Output(index, answered.tool, result.tokens, first_words(answered.arguments)))
    tools = [
        ToolUse(tool, len(calls[tool]), sum(calls[tool]), sum(results[tool]), max(results[tool], default=0))
        for tool in {**calls, **results}
    ]
    tools.sort(key=lambda use: (-use.results, -use.arguments))
    outputs.sort(key=lambda output: -output.tokens)
    return tuple(tools), tuple(outputs[:LARGEST])


def calls_of(fields: Fields, path: str) -> list[Call]:
    """The tool calls of a message: `tool_calls`, the older `function_call`, blocks of Anthropic's form."""
    if fields.get("role") != "assistant":
        return []
    calls = []
    for listed in fields.get("tool_calls") or ():
        call = read_fields(listed, path)
        inner = next((call[key] for key in ("function", "custom") if call.get(key) is not None), call)
        calls.append(make_call(call.get("id"), read_fields(inner, path), path))
    if fields.get("function_call") is not None:
        calls.append(make_call(None, read_fields(fields["function_call"], path), path))
    kinds = SERVER_CALLS if calls else ("tool_use", *SERVER_CALLS)  # else the blocks repeat them
    calls += [make_call(block.get("id"), block, path) for block in blocks_of(fields) if block.get("type") in kinds]
    return calls


def make_call(call_id: object, fields: Fields, path: str) -> Call:
    """A call from its name and its arguments: a string or a JSON value."""
    arguments = next((fields[key] for key in ("arguments", "input", "args") if fields.get(key) is not None), "")
    text = arguments if isinstance(arguments, str) else json_text(arguments, path)
    return Call(pairing_key(call_id), printable(str(fields.get("name") or "(no name)")), text)


def results_of(fields: Fields, tokens: int, counter: ctxfast.TokenCounter) -> Iterator[Result]:
    """The tool results of a message: itself, or blocks of Anthropic's form. `tokens`: of the message."""
    role = fields.get("role")
    if role in ("tool", "function"):
        name = fields.get("name")
        yield Result(pairing_key(fields.get("tool_call_id")), tokens, printable(str(name)) if name else None)
    elif role in ("user", "assistant"):
        for block in blocks_of(fields):
            if is_result(block):
                yield Result(pairing_key(block.get("tool_use_id")), counter.content([block]), None)


def blocks_of(fields: Fields) -> Iterator[Fields]:
    """The content blocks of a message as dicts; bare strings are left out."""
    content = fields.get("content")
    if isinstance(content, (list, tuple)):
        for block in content:
            if not isinstance(block, str):
                yield read_fields(block, "content")


def is_result(block: Fields) -> bool:
    """Whether a block is the result of a call; of the provider's own tools, each has its own type."""
    return str(block.get("type")).endswith("tool_result")


def look_at_pruning(messages: Sequence[Any], counter: ctxfast.TokenCounter, window: int | None) -> Pruning:
    """What pruning frees now, what it could free, and which reads are out of date."""
    usable = None if window is None else int(window * USABLE)
    now = ctxfast.prune_tool_outputs(messages, budget=usable, counter=counter).report
    possible = ctxfast.prune_tool_outputs(messages, budget=usable, prices=None, counter=counter).report
    saved: defaultdict[str, list[int]] = defaultdict(list)
    for item in possible.items:
        saved[item.reason].append(item.before - item.after)
    freed = [Freed(reason, len(savings), sum(savings)) for reason, savings in saved.items()]
    everything = ctxfast.PrunePolicy(
        protected_tokens=0, protected_steps=1, min_saved=0, keep_errors="all", keep_tools=(), keep_paths=()
    )
    outdated = [
        Outdated(item.index, printable(item.tool), item.before, item.reason, clip(printable(facts_of(item.stub)), CLIP))
        for item in ctxfast.prune_tool_outputs(messages, policy=everything, prices=None, counter=counter).report.items
        if item.reason in ("covered", "edited")
    ]
    return Pruning(
        before=now.before,
        after=now.after,
        outputs=len(now.items),
        earliest_changed_index=now.earliest_changed_index,
        tokens_rewritten=now.tokens_rewritten,
        blocked_by=now.blocked_by,
        freed=tuple(sorted(freed, key=lambda freed: -freed.saved)),
        outdated=tuple(sorted(outdated, key=lambda output: -output.tokens)[:LARGEST]),
    )


def facts_of(stub: str) -> str:
    """What a stub says of an output, without the name of the tool and why it went: the path, lines, size."""
    facts = stub.partition("\n")[0].removesuffix("]").partition(": ")[2].partition(" ")[2]
    return facts.removesuffix(", read again later").removesuffix(", edited later")


def look_for_cuts(messages: Sequence[Any], read: Sequence[Fields]) -> Cuts:
    """Turns, steps and safe cuts, and what a cut in the middle would hit."""
    cuts = ctxfast.safe_cuts(messages)
    middle = len(messages) // 2
    return Cuts(
        turns=len(ctxfast.turn_starts(messages)),
        steps=len(ctxfast.step_starts(messages)),
        safe=len(cuts),
        indices=len(messages) + 1,
        middle=place(read, middle),
        middle_is_safe=middle in cuts,
        found=place(read, ctxfast.find_safe_cut(messages, middle)),
    )


def look_at_tail(messages: Sequence[Any], read: Sequence[Fields], counter: ctxfast.TokenCounter, window: int) -> Tail:
    """What a fresh tail keeps."""
    usable = int(window * USABLE)
    budget = ctxfast.fresh_tail_budget(usable)
    tail = ctxfast.select_fresh_tail(messages, budget, counter=counter)
    return Tail(
        window=window,
        usable=usable,
        budget=budget,
        tokens=tail.tokens,
        over_budget=tail.over_budget,
        start=place(read, tail.start),
        messages=len(messages) - tail.start,
        turns=tail.turns,
        split_turn=tail.split_turn,
        pinned=tuple(Pinned(index, clip(text_of(read[index]), CLIP)) for index in tail.pinned),
    )


def place(read: Sequence[Fields], index: int) -> Place:
    """What is at an index."""
    if index == len(read):
        return Place(index, None, 0)
    return Place(index, printable(str(read[index].get("role"))), len(calls_of(read[index], f"messages[{index}]")))


# ------------------------------------------------------------------------------------------------ texts


def text_of(fields: Fields) -> str:
    """The text of a message, its text parts put together."""
    content = fields.get("content")
    if isinstance(content, str):
        return content
    return " ".join(str(block["text"]) for block in blocks_of(fields) if block.get("text"))


def first_words(arguments: str) -> str:
    """How the arguments of a call begin: of a JSON object, the values with their names."""
    try:
        values = json.loads(arguments)
        if isinstance(values, dict):
            texts = [value if isinstance(value, str) else json.dumps(value) for value in values.values()]
            room = CLIP if len(values) == 1 else CLIP // 2
            words = [f"{name}={short_value(text, room - len(name))}" for name, text in zip(values, texts, strict=True)]
            arguments = " ".join(words)
    except (ValueError, RecursionError):
        pass
    return clip(printable(arguments[: 2 * CLIP]), CLIP)


def short_value(text: str, length: int) -> str:
    """A value without its middle, if it is one long word: of a path the end says most. Of a command the beginning."""
    if len(text) < max(length, 20) or any(char.isspace() for char in text[:CLIP]):
        return text[:CLIP]
    return f"{text[:4]}…{text[6 - max(length, 20) :]}"


def printable(text: str) -> str:
    """The text on one line, without control characters, which a terminal would obey."""
    if text.isprintable():
        return text
    return "".join(char if char.isprintable() else " " for char in text)


def clip(text: str, length: int) -> str:
    """The beginning of a text, at most so many characters."""
    return text if len(text) <= length else text[: length - 1] + "…"


def column(names: Sequence[str]) -> int:
    """How wide a column of names is, in characters."""
    return min(max([11, *map(len, names)]) + 1, 40)


def heading(text: str) -> Iterator[str]:
    """A heading with a line under it."""
    yield text
    yield "-" * len(text)


def row(label: str, value: object) -> str:
    """One value with its name."""
    return f"{label:22}{value}"
