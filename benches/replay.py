"""What pruning and fitting cost in real sessions of coding agents, request by request: `make replay`.

    python benches/replay.py                         prints the tables of docs/replay.md; needs the optional data
    python benches/replay.py --page docs/replay.md   writes them into the page
    python benches/replay.py --quick                 a tenth of the sessions
    python benches/replay.py --rate 4                all sessions at so many characters per token
    python benches/replay.py --sessions              prints each session with the defaults, too

Each request is what was sent before it and what has come since, pruned with `prune_tool_outputs`, and if that is more
than usable, fitted with `fit_messages`. What is the same as at the start of the request before costs the price of
reading from the cache, the rest that of writing. The docs page says what the columns mean.
"""

from __future__ import annotations

import argparse
import functools
import re
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from math import isnan, nan
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

from cases import Message, shared_directory

from benches.sessions import AGENTS, MANY, QUOTE, Need, Session, sessions
from ctxfast import (
    CachePrices,
    CannotFitError,
    EstimatorConfig,
    FitPolicy,
    PrunePolicy,
    TokenCounter,
    fit_messages,
    prune_tool_outputs,
)

FRONT = 15_000  # tokens in front of the messages: system prompt and tools
STUB = 400  # characters that a stub has at most; what has more and is not whole is cut to its ends
LOW_WATER = 0.6
PRESETS = ("default", "careful", "thrifty", "seed", "opencode", "claude_code", "anthropic_api")

ANTHROPIC = CachePrices()
OPENAI = CachePrices(read=0.1, write=1.0)
OPENAI_OLD = CachePrices(read=0.5, write=1.0)
WIDE, MIDDLE, NARROW = 200_000, 128_000, 64_000  # windows


@dataclass(frozen=True)
class Way:
    """How a list is kept small; `None`: not at all."""

    prune: PrunePolicy | None = None
    fit: FitPolicy | None = None


NEVER = Way()
FIT_ONLY = Way(fit=FitPolicy(PrunePolicy(only_tools=())))


def preset(name: str) -> Way:
    """Pruning with a preset, and fitting with its protection."""
    policy: PrunePolicy = getattr(PrunePolicy, name)()
    return Way(policy, FitPolicy(policy))


def usable(window: int) -> int:
    """Tokens of a window that a request may have: 85 % of it without 8,000 for the answer."""
    return int(0.85 * window) - 8_000


# --------------------------------------------------------------------------------------------------- one session


@dataclass
class Outcome:
    """Of one session or of several."""

    cost: float = 0
    """Tokens at the full price."""
    requests: int = 0
    broken: int = 0
    """Requests that changed what was sent before."""
    over_window: int = 0
    over_usable: int = 0
    pruned: int = 0
    """Outputs that were stubs at some time."""
    lost: int = 0
    """Outputs that were gone with their step, and had not been stubs."""
    regrets: int = 0
    """Of the pruned: quoted, called for again with the same output, or read again, when no copy was left."""
    quoted_much: int = 0
    """With at least `MANY` quotes in one response."""

    def __add__(self, other: Outcome) -> Outcome:
        return Outcome(*(one + two for one, two in zip(vars(self).values(), vars(other).values(), strict=True)))


@dataclass
class Memory:
    """What became of the outputs of a session."""

    session: Session
    stubs: set[int] = field(default_factory=set)
    """Positions of outputs that were stubs at some time."""
    there: set[int] = field(default_factory=set)
    """Of those that are there now, or their ends are."""
    regretted: dict[int, int] = field(default_factory=dict)
    """Positions of stubs that were needed, and how many quotes at most."""

    def look(self, sent: Sequence[Message]) -> None:
        """Into a request."""
        self.there = set()
        for message in sent:
            position = message.get("position")
            if position is None or message["role"] != "tool":
                continue
            content = message["content"]
            original = self.session.messages[position]["content"]
            if content is original or content == original or len(content) > STUB:
                self.there.add(position)
            else:
                self.stubs.add(position)

    def need(self, needs: Iterable[Need]) -> None:
        """What the response to it repeats."""
        for need in needs:
            *_, newest = need.sources
            if newest in self.stubs and not self.there.intersection(need.sources):
                self.regretted[newest] = max(need.quotes, self.regretted.get(newest, 0))

    def reread(self, position: int) -> None:
        """An output has lines again of which every copy was a stub: the one that has most of them was needed."""
        lines = self.lines(position)
        shared, needed = max(((len(lines & self.lines(at)), at) for at in self.stubs - self.there), default=(0, 0))
        self.regretted.setdefault(needed if shared else position, 0)

    def lines(self, position: int) -> set[str]:
        """The lines of an output that are long enough to be a quote."""
        content: str = self.session.messages[position]["content"]
        return {line for line in content.splitlines() if len(line) >= QUOTE}


def replay(session: Session, way: Way, window: int, prices: CachePrices | None) -> Outcome:
    """One session, from the first request to the last."""
    limit = usable(window)
    counter, read, write = session.counter, *((prices.read, prices.write) if prices else (1.0, 1.0))
    found, memory = Outcome(), Memory(session)
    tokens_of = functools.cache(lambda identity: counter.message(known[identity]))
    known: dict[int, Any] = {}  # by identity; what is kept here keeps it
    sent: list[Any] = []
    before = 0  # messages of the session that the request before had
    for number, end in enumerate(session.requests):
        messages = [*sent, *session.messages[before:end]]
        if way.prune is not None:
            pruned = prune_tool_outputs(messages, policy=way.prune, budget=limit, prices=prices, counter=counter)
            messages = pruned.messages
            for index in pruned.report.reread_of_pruned:
                memory.reread(messages[index]["position"])
        known.update((id(message), message) for message in messages)
        sizes = [tokens_of(id(message)) for message in messages]
        if way.fit is not None and FRONT + sum(sizes) > limit:
            with suppress(CannotFitError):  # then it is sent as it is, and counted as too large
                room = limit - FRONT
                messages = fit_messages(messages, room, policy=way.fit, low_water=LOW_WATER, counter=counter).messages
            known.update((id(message), message) for message in messages)
            sizes = [tokens_of(id(message)) for message in messages]
        total = FRONT + sum(sizes)
        same = next((at for at, (new, old) in enumerate(zip(messages, sent, strict=False)) if new != old), None)
        same = min(len(sent), len(messages)) if same is None else same
        cached = FRONT + sum(sizes[:same]) if number else 0
        found.cost += read * cached + write * (total - cached)
        found.requests += 1
        found.broken += same < len(sent)
        found.over_window += total > window
        found.over_usable += total > limit
        memory.look(messages)
        memory.need(session.needs.get(number, ()))
        sent, before = messages, end
    outputs = {message["position"] for message in session.messages[:before] if message["role"] == "tool"}
    found.pruned = len(memory.stubs)
    found.lost = len(outputs - memory.stubs - memory.there)
    found.regrets = len(memory.regretted)
    found.quoted_much = sum(quotes >= MANY for quotes in memory.regretted.values())
    return found


# ------------------------------------------------------------------------------------------------ several sessions


def of(part: float, whole: float) -> float:
    """A share; not a number if there is nothing to have a share of."""
    return part / whole if whole else nan


@dataclass
class Compared:
    """Sessions kept small in one way, beside another way."""

    one: Outcome = field(default_factory=Outcome)
    base: float = 0
    """What the other way costs."""
    shares: dict[str, float] = field(default_factory=dict)
    """Of the cost of the other way, by session."""

    @property
    def share(self) -> float:
        return of(self.one.cost, self.base)

    @property
    def worst(self) -> float:
        return max(self.shares.values(), default=nan)

    @property
    def broken(self) -> float:
        return of(self.one.broken, self.one.requests)

    @property
    def regrets_of_pruned(self) -> float:
        """Of 100 pruned outputs."""
        return of(100 * self.one.regrets, self.one.pruned)

    @property
    def regrets_of_requests(self) -> float:
        """Of 1,000 requests."""
        return of(1_000 * self.one.regrets, self.one.requests)


class Bench:
    """All replays of some sessions, each done once."""

    def __init__(self, several: Iterable[Session]) -> None:
        self.sessions = list(several)
        self.replayed = functools.cache(self._replayed)

    def _replayed(self, at: int, way: Way, window: int, prices: CachePrices | None) -> Outcome:
        return replay(self.sessions[at], way, window, prices)

    def fits(self, at: int, window: int) -> bool:
        """Whether the whole session does."""
        one = self.sessions[at]
        return FRONT + one.counter.messages(one.messages[: one.requests[-1]]) <= usable(window)

    def compare(
        self, way: Way, window: int, prices: CachePrices | None = ANTHROPIC, *, fit: bool, agent: str | None = None
    ) -> Compared:
        """Sessions that fit a window beside never pruning, the others beside fitting alone."""
        found = Compared()
        for at, one in enumerate(self.sessions):
            if self.fits(at, window) == fit and agent in (None, one.agent):
                outcome = self.replayed(at, way, window, prices)
                base = self.replayed(at, NEVER if fit else FIT_ONLY, window, prices).cost
                found.one += outcome
                found.base += base
                found.shares[one.name] = outcome.cost / base
        return found


# -------------------------------------------------------------------------------------------------------- opencode

SHORT = 36  # characters: an output that has no more has no more tokens than OpenCode's stub, at four characters each


def opencode_prunes(messages: Sequence[Message], gone: set[int]) -> set[int]:
    """Positions of the outputs that OpenCode's algorithm clears now (`compaction.ts`); `gone` are those that it has.

    Newest to oldest: nothing in the newest two turns; at an output that is gone it stops; what is beyond 40,000 tokens
    of output (four characters each) is marked, but for errors and skills; if that is more than 20,000, it is cleared.
    """
    names = {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}
    turns = total = freed = 0
    marked: set[int] = set()
    for message in reversed(messages):
        turns += message["role"] == "user"
        if turns < 2 or message["role"] != "tool":
            continue
        if message["position"] in gone:
            break
        name = names.get(message["tool_call_id"], "")
        if name.lower() == "skill" or message.get("is_error"):  # Claude Code writes `Skill`
            continue
        tokens = round(len(message["content"]) / 4)
        total += tokens
        if total > 40_000:
            freed += tokens
            marked.add(message["position"])
    return marked if freed > 20_000 else set()


@dataclass
class Agreement:
    """How often the preset and the algorithm have cleared the same outputs of a session."""

    requests: int = 0
    same: int = 0
    """Requests before which both have cleared the same."""
    nearly: int = 0
    """Or would have, if the algorithm had left those outputs that are no longer than the stub."""
    cleared: int = 0
    """Outputs, by the algorithm, at the end of each session."""
    cleared_by_both: int = 0


def opencode_agrees(several: Iterable[Session]) -> Agreement:
    """Both on the full history of each session, before each request, at four characters per token."""
    counter = TokenCounter.flat(EstimatorConfig(chars_per_token=4.0, message_overhead=0))
    found = Agreement()
    for one in several:
        short = {message["position"] for message in one.messages if len(message["content"]) <= SHORT}
        theirs: set[int] = set()
        ours: set[int] = set()
        report = None
        for end in one.requests:
            theirs |= opencode_prunes(one.messages[:end], theirs)
            report = prune_tool_outputs(
                one.messages[:end], policy=PrunePolicy.opencode(), prices=None, counter=counter, previous=report
            ).report
            ours = {edit.index for edit in report.items}
            found.requests += 1
            found.same += ours == theirs
            found.nearly += ours == theirs - short
        found.cleared += len(theirs)
        found.cleared_by_both += len(theirs & ours)
    return found


# ---------------------------------------------------------------------------------------------------------- tables


@dataclass(frozen=True)
class Gate:
    """What is asked of the defaults."""

    what: str
    value: float
    most: float
    written: Callable[[float], str]

    @property
    def met(self) -> bool:
        return self.value <= self.most

    def row(self) -> list[str]:
        met = "-" if isnan(self.value) else "yes" if self.met else "**no**"
        return [self.what, self.written(self.value), self.written(self.most), met]


def ratio(value: float) -> str:
    return "-" if isnan(value) else f"{value:.3f}"


def hundredth(value: float) -> str:
    return "-" if isnan(value) else f"{value:.2f}"


def tenth(value: float) -> str:
    return "-" if isnan(value) else f"{value:,.1f}"


def percent(value: float) -> str:
    return "-" if isnan(value) else f"{value:.1%}".replace("%", " %")


def whole(value: float) -> str:
    return f"{value:,.0f}"


def gates(bench: Bench) -> list[Gate]:
    way = preset("default")
    below = bench.compare(way, WIDE, fit=True)
    uncached = bench.compare(way, WIDE, None, fit=True)
    narrow, middle, wide = (bench.compare(way, window, fit=False) for window in (NARROW, MIDDLE, WIDE))
    above = middle.one + wide.one
    much = of(1_000 * below.one.quoted_much, below.one.requests)
    return [
        Gate("fits 200k: cost, of never pruning", below.share, 0.90, ratio),
        Gate("worst session", below.worst, 1.10, ratio),
        Gate("prefix broken, of the requests", below.broken, 0.05, percent),
        Gate("beyond 128k: cost, of fitting alone", middle.share, 0.95, ratio),
        Gate("worst session", middle.worst, 1.15, ratio),
        Gate("prefix broken, of the requests", middle.broken, 0.06, percent),
        Gate("beyond 200k: cost, of fitting alone", wide.share, 0.92, ratio),
        Gate("worst session", wide.worst, 1.15, ratio),
        Gate("beyond 64k: cost, of fitting alone", narrow.share, 1.02, ratio),
        Gate("requests over the window, 128k and 200k", above.over_window + below.one.over_window, 0, whole),
        Gate("requests over what is usable, 128k and 200k", above.over_usable + below.one.over_usable, 0, whole),
        Gate("fits 200k, no cache: cost, of never pruning", uncached.share, 0.70, ratio),
        Gate("worst session", uncached.worst, 1.00, ratio),
        Gate("fits 200k: regrets, of 100 pruned outputs", below.regrets_of_pruned, 28, tenth),
        Gate("regrets, in 1,000 requests", below.regrets_of_requests, 80, tenth),
        Gate("quoted much, in 1,000 requests", much, 32, tenth),
    ]


def cells(found: Compared) -> list[str]:
    """Cost, worst session, prefix broken."""
    return [ratio(found.share), hundredth(found.worst), percent(found.broken)]


def preset_rows(bench: Bench) -> list[list[str]]:
    rows = []
    for name in PRESETS:
        way = preset(name)
        below, middle, wide = (bench.compare(way, WIDE, fit=True), *beyond(bench, way))
        regrets = [tenth(below.regrets_of_pruned), tenth(below.regrets_of_requests)]
        lost = whole(middle.one.lost)
        rows.append([f"`{name}`", *cells(below), *regrets, *cells(middle), lost, *cells(wide)])
    middle, wide = beyond(bench, FIT_ONLY)
    rows.append(["fitting alone", *["-"] * 5, *cells(middle), whole(middle.one.lost), *cells(wide)])
    return rows


def beyond(bench: Bench, way: Way) -> tuple[Compared, Compared]:
    return bench.compare(way, MIDDLE, fit=False), bench.compare(way, WIDE, fit=False)


def agent_rows(bench: Bench) -> list[list[str]]:
    way, rows = preset("default"), []
    for agent in AGENTS:
        below = bench.compare(way, WIDE, fit=True, agent=agent)
        above = bench.compare(way, MIDDLE, fit=False, agent=agent)
        regrets = tenth(below.regrets_of_pruned)
        counts = [f"{len(found.shares)} / {found.one.requests:,}" for found in (below, above)]
        rows.append([agent, counts[0], *cells(below), regrets, counts[1], *cells(above)])
    return rows


def price_rows(bench: Bench) -> list[list[str]]:
    rows = []
    for name, prices in {
        "Anthropic: read 0.1, write 1.25": ANTHROPIC,
        "OpenAI: read 0.1, write 1": OPENAI,
        "read 0.5, write 1": OPENAI_OLD,
        "no cache": None,
    }.items():
        below = bench.compare(preset("default"), WIDE, prices, fit=True)
        wide = bench.compare(preset("default"), WIDE, prices, fit=False)
        rows.append([name, *cells(below), tenth(below.regrets_of_pruned), *cells(wide)])
    return rows


def opencode_rows(bench: Bench) -> list[list[str]]:
    found = opencode_agrees(bench.sessions)
    return [[whole(number) for number in vars(found).values()]]


COST = ("cost", "worst", "broken")
FITS = (f"fits 200k: {COST[0]}", *COST[1:])
BEYOND_MIDDLE = (f"beyond 128k: {COST[0]}", *COST[1:])
BEYOND_WIDE = (f"beyond 200k: {COST[0]}", *COST[1:])
COUNTS = "sessions / requests"
REGRETS = "regrets / 100"
Rows = Callable[[Bench], list[list[str]]]
TABLES: dict[str, tuple[list[str], Rows]] = {
    "gates": (
        ["defaults, Anthropic's prices", "measured", "at most", "met"],
        lambda bench: [gate.row() for gate in gates(bench)],
    ),
    "presets": (["", *FITS, REGRETS, "/ 1,000", *BEYOND_MIDDLE, "outputs lost", *BEYOND_WIDE], preset_rows),
    "agents": (["", f"fits 200k: {COUNTS}", *COST, REGRETS, f"beyond 128k: {COUNTS}", *COST], agent_rows),
    "prices": (["", *FITS, REGRETS, *BEYOND_WIDE], price_rows),
    "opencode": (
        ["requests", "the same is cleared", "but for short outputs", "outputs cleared by the algorithm", "by both"],
        opencode_rows,
    ),
}


def table(head: list[str], rows: list[list[str]]) -> str:
    lines = [head, ["---", *["--:"] * (len(head) - 1)], *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def into_page(page: Path, name: str, text: str) -> None:
    place = re.compile(rf"(<!-- table: {name} -->\n)(?:\|.*\n)*(?=<!-- end -->)")
    new, found = place.subn(lambda match: f"{match[1]}{text}\n", page.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{page} has no place for the table {name!r}")
    page.write_text(new, encoding="utf-8")


def print_sessions(bench: Bench) -> None:
    way = preset("default")
    for at, one in enumerate(bench.sessions):
        for window in (NARROW, MIDDLE, WIDE):
            fit = bench.fits(at, window)
            if window != WIDE and fit:
                continue
            found = bench.replayed(at, way, window, ANTHROPIC)
            base = bench.replayed(at, NEVER if fit else FIT_ONLY, window, ANTHROPIC)
            said = [f"{found.cost / base.cost:.3f} of {'never' if fit else 'fit'}", f"broken {found.broken}"]
            said += [f"of {found.requests}", f"(alone {base.broken})", f"pruned {found.pruned}", f"lost {found.lost}"]
            said += [f"regrets {found.regrets}", f"over {found.over_window}, {found.over_usable}"]
            print(f"{window // 1000:4}k  {one.name:60} {' '.join(said)}")


def main() -> None:
    parser = argparse.ArgumentParser(description="What pruning and fitting cost in real sessions.")
    parser.add_argument("--page", type=Path, help="a page of Markdown whose tables are written anew")
    parser.add_argument("--quick", action="store_true", help="only every tenth session")
    parser.add_argument("--rate", type=float, help="characters per token, for all sessions")
    parser.add_argument("--sessions", action="store_true", help="print each session, too")
    parser.add_argument("--only", nargs="*", choices=TABLES, help="these tables")
    options = parser.parse_args()
    directory = shared_directory()
    if directory is None:
        raise SystemExit("no shared data: set CTXFAST_SHARED to their directory")
    start = time.perf_counter()
    found = list(sessions(directory / "transcripts", options.rate))
    bench = Bench(found[::10] if options.quick else found)
    print(f"{time.perf_counter() - start:7.1f} s  {len(bench.sessions)} sessions are read", file=sys.stderr)
    if options.sessions:
        print_sessions(bench)
    for name in options.only or TABLES:
        head, rows = TABLES[name]
        text = table(head, rows(bench))
        print(f"{time.perf_counter() - start:7.1f} s  {name}", file=sys.stderr)
        if options.page is None:
            print(f"\n{text}")
        else:
            into_page(options.page, name, text)


if __name__ == "__main__":
    main()
