"""`fit_messages`: the core against the reference, what must hold of every answer, each rung of the ladder by hand."""

from __future__ import annotations

import copy
import dataclasses
import itertools
import json
import math
import pickle
import re
from typing import Any

import pytest
from agent_sessions import kinds_of_objects, often, own_policies, presets, pruning_counters, sessions, whole_sessions
from cases import calls_of, get, has_user_text, pairing, results_of
from hypothesis import given, settings
from hypothesis import strategies as st
from strategies import Message, Pair, as_object
from test_prune_reference import ITEM

import ctxfast
from ctxfast import (
    BudgetError,
    CannotFitError,
    ContextBudget,
    MessageTypeError,
    TokenCounter,
    fit_messages,
    keep_last,
    reference,
    remove,
    validate,
)
from ctxfast.policy import FitPolicy, PrunePolicy

Options = dict[str, Any]

FIELDS = ("budget", "before", "after", "beside", "pinned", "earliest_changed_index")


class Shelf:
    """A store that gives numbers."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def save(self, text: str) -> str:
        if text not in self.texts:
            self.texts.append(text)
        return f"no. {self.texts.index(text)}"


def plain(report: Any) -> Options:
    """A report as plain data, whoever has written it."""
    fields: Options = {name: getattr(report, name) for name in FIELDS}
    fields["dropped"] = [tuple(part) for part in report.dropped]
    for name in ("stubs", "clamped"):
        fields[name] = [tuple(getattr(edit, field) for field in (*ITEM, "stored")) for edit in getattr(report, name)]
    fields["repairs"] = [(fix.code, fix.index, fix.call_id, fix.action) for fix in report.repairs.items]
    return fields


def outcome(package: Any, messages: Any, budget: Any, options: Options) -> Any:
    """What one of both gives: a list with its report, or an error with its numbers."""
    try:
        fitted = package.fit_messages(messages, budget, **options)
    except CannotFitError as error:
        return error.budget, error.needed
    return fitted.messages, plain(fitted.report)


policies = st.builds(
    FitPolicy,
    prune=often((2, presets), (3, own_policies), (1, st.just(PrunePolicy()))),
    pin_first=st.booleans(),
)
options = st.fixed_dictionaries(
    {},
    optional={
        "policy": policies,
        "low_water": st.sampled_from([0, 0.3, 0.6, 0.6, 0.9, 1]),
        "system": st.sampled_from(["Be kind.", [{"type": "text", "text": "Be kind."}]]),
        "tools": st.sampled_from([[], [{"name": "read_file", "input_schema": {"type": "object"}}]]),
        "used": st.sampled_from([0, 30, 200, 1_000, 5_000]),
        "form": st.sampled_from(["auto", "openai", "anthropic"]),
        "provider": st.sampled_from([None, "anthropic"]),
    },
)
budgets = st.one_of(
    st.integers(1, 300),
    st.integers(1, 3_000),
    st.sampled_from([None, 10**9, ContextBudget(None), ContextBudget(500, 100), ContextBudget(2_000, 100)]),
)


@settings(max_examples=settings().max_examples * 2 // 5)
@given(sessions, budgets, options, pruning_counters, st.booleans())
def test_the_core_gives_what_the_reference_gives(
    messages: list[Message], budget: Any, options: Options, pair: Pair, stores: bool
) -> None:
    fast, slow = pair
    shelves = [{"store": Shelf()} if stores else {} for _ in range(2)]
    got = outcome(ctxfast, messages, budget, {**options, **shelves[0], "counter": fast})
    expected = outcome(reference, messages, budget, {**options, **shelves[1], "counter": slow})
    assert got == expected


# ------------------------------------------------------------------------------------------ what always holds


def facts(messages: list[Any]) -> set[int]:
    """Identities of messages."""
    return {id(message) for message in messages}


@settings(max_examples=settings().max_examples * 2 // 5)
@given(sessions, st.integers(1, 2_000), policies, pruning_counters, kinds_of_objects, st.booleans())
def test_what_holds_of_every_answer(
    messages: list[Message],
    budget: int,
    policy: FitPolicy,
    pair: Pair,
    kind: tuple[str, ...] | None,
    anthropic: bool,
) -> None:
    counter = pair[0]
    form: Any = "anthropic" if anthropic else "auto"
    given_list = [as_object(message, kind) if kind is not None else message for message in messages]
    before = copy.deepcopy(messages)
    mended = ctxfast.repair(given_list, form)
    no_user = {"no_user_message"}
    fitted, error = None, None
    try:
        fitted = fit_messages(given_list, budget, form=form, policy=policy, counter=counter)
    except CannotFitError as refused:
        error = refused
    assert messages == before  # the input is not changed
    if fitted is None:
        assert error is not None
        assert error.budget == budget < error.needed
        assert error.pinned <= error.needed
        assert counter.messages(mended.messages) > budget
        return
    result, report = fitted.messages, fitted.report
    assert counter.messages(result) == report.after <= budget
    assert report.before == counter.messages(mended.messages)
    assert {problem.code for problem in validate(result, form)} <= no_user
    if report.before <= budget:
        assert result == mended.messages
        assert report.changed == mended.report.changed
        return
    assert report.changed
    assert report.after < report.before
    again = fit_messages(result, budget, form=form, policy=policy, counter=counter)
    assert again.messages == result
    assert not again.report.changed
    if kind is not None or mended.report.changed:
        return

    # all messages are there, changed, or said to be gone, and untouched ones are the same objects
    gone = {index for part in report.dropped for index in range(part.start, part.stop)}
    edited = {edit.index for edit in (*report.stubs, *report.clamped)}
    assert not gone & edited
    new = facts(result)
    for index, message in enumerate(mended.messages):
        if index in gone and index not in report.pinned:
            assert id(message) not in new
        elif index not in edited and index not in report.pinned and not anthropic:
            assert id(message) in new, index
    for edit in (*report.stubs, *report.clamped):
        assert edit.after < edit.before
    firsts = [*gone, *edited]
    assert report.earliest_changed_index == min(firsts)
    head = report.earliest_changed_index or 0
    assert result[:head] == mended.messages[:head]
    # the task and what a system says at the start are there
    users = [message for message in mended.messages if has_user_text(message)]
    if users:
        assert text_of(users[-1]) in "\n".join(text_of(message) for message in result if has_user_text(message))
    leading = list(itertools.takewhile(lambda message: message["role"] in ("system", "developer"), mended.messages))
    assert result[: len(leading)] == leading
    # what users said and is not there is listed
    listed = "\n".join(part.text for part in report.dropped)
    kept = "\n".join(text_of(message) for message in result if has_user_text(message))
    assert all(text_of(user) in listed or text_of(user) in kept for user in users)


def text_of(message: Any) -> str:
    """What a user says, its text parts joined by line feeds."""
    content = get(message, "content")
    if not isinstance(content, (list, tuple)):
        return content or ""
    texts = [part if isinstance(part, str) else part.get("text") for part in content if part_says(part)]
    return "\n".join(text or "" for text in texts)


def part_says(part: Any) -> bool:
    return isinstance(part, str) or part.get("type") in ("text", "input_text", "output_text")


@settings(max_examples=settings().max_examples // 5)
@given(whole_sessions, st.integers(100, 1_500), policies)
def test_growing_lists_lose_no_more_than_they_must(messages: list[Message], budget: int, policy: FitPolicy) -> None:
    """Full histories, request by request: what was gone stays away, and nothing is a full text again."""
    counter = TokenCounter.from_callable(len, message_overhead=0)
    mended = ctxfast.repair(messages).messages
    lengths = [start for start in ctxfast.step_starts(mended) if start]
    start, stubs = 0, dict[int, str]()
    for length in [*lengths, len(mended)]:
        if validate(mended[:length]):
            continue
        try:
            report = fit_messages(mended[:length], budget, policy=policy, counter=counter).report
        except CannotFitError:
            return
        begins = max((part.stop for part in report.dropped), default=0)
        assert begins >= start
        start = begins
        now = {edit.index: edit.stub for edit in report.stubs}
        assert all(index < start or index in now for index in stubs)
        stubs.update(now)


# ------------------------------------------------------------------------------------------------ rung by rung

LENGTH = TokenCounter.from_callable(len, message_overhead=0)  # a token is a character


def read(number: int, size: int, form: str = "openai") -> list[Message]:
    """A step that reads a file: 40 characters and as many as asked for."""
    call_id, arguments = f"c{number}", json.dumps({"path": f"{number}.py", "_": "x" * 12})[:31]
    text = "\n".join(f"line {line:04}" for line in range(size // 10 + 1))[:size]
    if form == "anthropic":
        call = {"type": "tool_use", "id": call_id, "name": "read_file", "input": {"path": f"{number}.py"}}
        result = {"type": "tool_result", "tool_use_id": call_id, "content": text}
        return [{"role": "assistant", "content": [call]}, {"role": "user", "content": [result]}]
    function = {"name": "read_file", "arguments": arguments}
    calls = [{"id": call_id, "type": "function", "function": function}]
    return [
        {"role": "assistant", "content": None, "tool_calls": calls},
        {"role": "tool", "tool_call_id": call_id, "content": text},
    ]


def says(role: str, size: int) -> Message:
    return {"role": role, "content": (role + " ") * (size // 5) + "." * 9}


USER: Message = {"role": "user", "content": "Mend the tests."}
NEXT: Message = {"role": "user", "content": "And now the docs."}


def steps(count: int, size: int = 1_000, first: int = 0) -> list[Message]:
    return [message for number in range(first, first + count) for message in read(number, size)]


def fit(messages: list[Any], budget: Any, **options: Any) -> Any:
    return fit_messages(messages, budget, counter=options.pop("counter", LENGTH), **options)


def kept_of(fitted: Any, messages: list[Any]) -> list[int]:
    """Indices of the messages that are the same objects."""
    places = {id(message): index for index, message in enumerate(messages)}
    return [places[id(message)] for message in fitted.messages if id(message) in places]


def test_a_list_that_fits_comes_back_as_it_is() -> None:
    messages = [USER, *steps(3)]
    fitted = fit(messages, LENGTH.messages(messages))
    assert fitted.messages == messages
    assert fitted.messages is not messages
    assert kept_of(fitted, messages) == list(range(7))
    report = fitted.report
    assert (report.changed, report.saved, report.earliest_changed_index) == (False, 0, None)
    assert (report.dropped, report.stubs, report.clamped, report.pinned) == ((), (), (), ())
    assert fit([], 1).messages == []


@pytest.mark.parametrize("budget", [None, ContextBudget(None), ContextBudget(0)])
def test_an_unknown_window_decides_nothing(budget: Any) -> None:
    messages = [USER, *steps(30)]
    fitted = fit([*messages, *steps(1)[1:]], budget)
    assert fitted.messages == messages
    assert fitted.report.unknown_window
    assert [fix.code for fix in fitted.report.repairs.items] == ["orphan_result"]
    assert "not known" in str(fitted.report)


def test_old_outputs_go_before_messages() -> None:
    messages = [USER, *steps(20)]
    fitted = fit(messages, 20_000, low_water=0.9)
    assert fitted.report.dropped == ()
    assert len(fitted.messages) == len(messages)
    stubs = [edit.index for edit in fitted.report.stubs]
    assert stubs == list(range(2, 2 + 2 * len(stubs), 2))
    # a quarter of the budget, 5,000 tokens of output, stays as it is, and the output that crosses that border goes
    assert len(stubs) == 20 - 5
    assert all(edit.reason == "aged" for edit in fitted.report.stubs)


def test_then_the_oldest_steps_go_and_the_user_message_of_their_turn_stays() -> None:
    messages = [USER, *steps(20)]
    policy = FitPolicy(PrunePolicy(keep_tools=("read",)), pin_first=False)
    fitted = fit(messages, 20_000, policy=policy)
    step = LENGTH.messages(messages[1:3])
    kept = (12_000 - 15) // step
    assert kept_of(fitted, messages) == [0, *range(41 - 2 * kept, 41)]
    assert fitted.report.pinned == (0,)
    assert [tuple(part) for part in fitted.report.dropped] == [
        (start, start + 2, "step", step, "", None) for start in range(1, 41 - 2 * kept, 2)
    ]
    assert fitted.report.earliest_changed_index == 1


def test_whole_turns_go_with_what_the_user_said() -> None:
    older = {"role": "user", "content": "Look around first. " * 60}
    messages = [older, *steps(10), USER, *steps(4, first=10), NEXT, *steps(4, first=14)]
    policy = FitPolicy(PrunePolicy(keep_tools=("read",)))
    fitted = fit(messages, 9_000, policy=policy)
    # the cut is in the second turn: its user message stays
    assert fitted.messages[0] is USER
    assert fitted.report.pinned == (21,)
    assert [part.text for part in fitted.report.dropped if part.text] == [older["content"]]
    # the first message has more than 10 % of the budget; in a larger one it stays
    assert fit([older, *messages[1:]], 12_000, policy=policy).report.pinned == (0, 21)
    with_less = dataclasses.replace(policy, pin_first=False)
    assert fit([older, *messages[1:]], 12_000, policy=with_less).report.pinned == (21,)


def test_what_is_huge_is_cut_so_that_other_steps_can_stay() -> None:
    messages = [USER, *steps(5), *read(5, 30_000)]
    fitted = fit(messages, 12_000)
    assert fitted.report.dropped == ()
    (cut,) = fitted.report.clamped
    assert (cut.index, cut.before, cut.reason) == (12, 30_000, "clamped")
    assert 2_500 < cut.after <= 3_000
    text = fitted.messages[12]["content"]
    assert text == cut.stub
    head, line = text.rsplit("\n", 1)
    assert messages[12]["content"].startswith(head + "\n")  # of what was read the head is kept, in whole lines
    assert re.fullmatch(r"\[Tool output truncated: 2,\d{3} lines, 2\d,\d{3} bytes omitted, not saved\]", line)
    assert len(head) + int(line.split()[5].replace(",", "")) == 30_000


def test_a_step_that_is_too_large_alone_is_cut_to_what_fits() -> None:
    call: Message = {"role": "assistant", "content": None, "tool_calls": []}
    results = []
    for number, size in enumerate((200, 9_000, 9_000, 9_000, 9_000, 9_000)):
        asked, answered = read(number, size)
        call["tool_calls"] += asked["tool_calls"]
        results.append(answered)
    messages = [USER, *steps(3, first=10), call, *results]
    fitted = fit(messages, 8_000)
    assert fitted.messages[0] is USER
    assert [message["role"] for message in fitted.messages] == ["user", "assistant", *["tool"] * 6]
    assert fitted.messages[2] is results[0]  # it is smaller than its share
    sizes = [edit.after for edit in fitted.report.clamped]
    assert len(sizes) == 5
    assert max(sizes) - min(sizes) <= 10  # whole lines
    assert 7_500 < fitted.report.after <= 8_000


def test_what_cannot_fit_is_an_error_with_the_numbers() -> None:
    task = says("user", 5_000)
    messages = [says("system", 500), task, *steps(2)]
    with pytest.raises(CannotFitError) as caught:
        fit(messages, 4_000, system="s" * 100)
    error = caught.value
    assert (error.budget, error.largest) == (4_000, f"messages[1] (user): {LENGTH.message(task):,} tokens")
    assert error.pinned == 100 + LENGTH.messages(messages[:2])
    assert error.pinned < error.needed < error.pinned + 200  # a call, and an output of 64 tokens
    again = pickle.loads(pickle.dumps(error))
    assert (str(again), again.needed) == (str(error), error.needed)
    with pytest.raises(CannotFitError, match=r"what stands beside the messages \(system, tools\): 9,000 tokens"):
        fit(messages, 4_000, system="s" * 9_000)


def test_what_users_say_is_cut_only_if_that_is_asked_for() -> None:
    task = {"role": "user", "content": "Please read this. " + "x" * 20_000 + " And now mend it."}
    blocks = [{"type": "text", "text": "y" * 9_000}, {"type": "text", "text": "short"}]
    parts: Message = {"role": "user", "content": blocks}
    messages = [task, *steps(1), parts, *steps(1, first=1)]
    with pytest.raises(CannotFitError):
        fit(messages, 6_000)
    shelf = Shelf()
    fitted = fit(messages, 6_000, policy=FitPolicy(clamp_user=True), store=shelf)
    assert fitted.report.after <= 6_000
    assert validate(fitted.messages) == []
    said = [message["content"] for message in fitted.messages if message["role"] == "user"]
    assert said[-1][1] is blocks[1]
    assert re.search(r"\n\[Text cut: .*omitted, saved as no\. \d", said[-1][0]["text"])
    assert blocks[0]["text"] in shelf.texts
    assert messages[0] is task
    assert fit([task], 30_000, policy=FitPolicy(clamp_user=True)).messages[0] is task


def test_a_first_message_or_an_opener_gives_way_before_that() -> None:
    """Of a task in the middle of a step the turn's opener is not needed, where a user still speaks first."""
    opener = {"role": "user", "content": "x" * 900}
    asked, answered = read(0, 30, "anthropic")
    answered["content"].append({"type": "text", "text": "No, the docs."})
    messages = [opener, asked, answered, *read(1, 300, "anthropic")]
    fitted = fit(messages, 600)
    assert fitted.messages[0] == {"role": "user", "content": [{"type": "text", "text": "No, the docs."}]}
    assert [tuple(part)[:3] for part in fitted.report.dropped] == [(0, 1, "user"), (1, 3, "step")]
    assert fitted.report.pinned == (2,)


def test_users_that_became_neighbours_are_one_in_the_form_that_wants_it() -> None:
    openai = [USER, *steps(8), NEXT, *steps(1, first=8)]
    anthropic = [USER, *(m for n in range(8) for m in read(n, 1_000, "anthropic")), NEXT, *read(8, 1_000, "anthropic")]
    policy = FitPolicy(PrunePolicy(protected_steps=1, keep_tools=("read",)))
    fitted = fit(openai, 2_000, policy=policy)
    assert fitted.messages[:2] == [USER, NEXT]
    fitted = fit(anthropic, 2_000, policy=policy)
    texts = [{"type": "text", "text": message["content"]} for message in (USER, NEXT)]
    assert fitted.messages[0] == {"role": "user", "content": texts}
    assert fitted.messages[1] is anthropic[-2]
    assert fitted.report.pinned == (0,)
    assert validate(fitted.messages) == []
    assert fit(fitted.messages, 2_000, policy=policy).messages == fitted.messages


def test_system_prompts_and_tools_count() -> None:
    messages = [USER, *steps(8)]
    tools = [{"name": "read_file", "description": "d" * 500, "input_schema": {"type": "object"}}]
    room = LENGTH.messages(messages)
    beside = LENGTH.request({"messages": [], "system": "s" * 500, "tools": tools})
    fitted = fit(messages, room + beside, system="s" * 500, tools=tools)
    assert not fitted.report.changed
    assert fitted.report.beside == beside
    fitted = fit(messages, room + beside - 1, system="s" * 500, tools=tools)
    assert fitted.report.changed
    body = {"messages": fitted.messages, "system": "s" * 500, "tools": tools}
    assert fitted.report.after == LENGTH.request(body)


def test_a_budget_has_its_own_margin() -> None:
    messages = [USER, *steps(60, 4_000)]
    counter = TokenCounter.default()
    middle = TokenCounter.estimator("o200k", safety=0.5)
    exact = middle.messages(messages)
    budget = ContextBudget(None, soft_limit=None, input_limit=exact, safety_margin=0)
    assert budget.usable == exact
    assert not fit(messages, budget, counter=counter).report.changed
    report = fit(messages, exact, counter=counter).report
    assert report.before == counter.messages(messages) > exact
    assert report.changed
    smaller = ContextBudget(None, input_limit=exact - 1, safety_margin=0)
    fitted = fit(messages, smaller, counter=counter)
    assert fitted.report.after == middle.messages(fitted.messages) <= exact - 1


def test_what_the_provider_counted_counts() -> None:
    messages = [USER, *steps(8)]
    own = LENGTH.messages(messages)
    assert not fit(messages, 20_000, used=20_000).report.changed
    fitted = fit(messages, 20_000, used=20_001)
    assert fitted.report.before == 20_001
    assert fitted.report.after == LENGTH.messages(fitted.messages) + 20_001 - own <= 20_000
    # it counts less than we do: what is left is scaled
    fitted = fit(messages, own // 3, used=own // 2)
    assert fitted.report.before == own // 2
    assert fitted.report.after <= own // 3
    assert fitted.report.after == pytest.approx(LENGTH.messages(fitted.messages) / 2, rel=0.01)
    assert not fit(messages, own // 2, used=own // 2).report.changed


def test_what_the_provider_counts_more_goes_with_the_messages_before_nothing_fits() -> None:
    messages = [USER, *steps(40)]
    own = LENGTH.messages(messages)
    fitted = fit(messages, own // 4, used=own * 13 // 10)
    assert fitted.report.before == own * 13 // 10
    assert LENGTH.messages(fitted.messages) > 1_000
    assert fitted.report.after == pytest.approx(LENGTH.messages(fitted.messages) * 1.3, rel=0.01)
    assert fitted.report.after <= own // 4


def test_a_measurement_that_wobbles_changes_nothing() -> None:
    """Provider's counts differ a little from call to call; the cut must not move with them."""
    messages = [USER, *steps(40)]
    own = LENGTH.messages(messages)
    found = {len(fit(messages, 30_000, used=own + 3_100 + more).messages) for more in range(0, 300, 20)}
    assert len(found) == 1


def test_all_that_goes_is_saved() -> None:
    messages = [says("user", 3_000), *steps(6), USER, *steps(12, first=6), *read(20, 20_000)]
    shelf = Shelf()
    fitted = fit(messages, 14_000, store=shelf)
    saved = {f"no. {number}": text for number, text in enumerate(shelf.texts)}
    assert fitted.report.stubs
    assert fitted.report.dropped
    assert fitted.report.clamped
    for edit in (*fitted.report.stubs, *fitted.report.clamped):
        assert saved[edit.stored or ""] == messages[edit.index]["content"]
        assert f"saved as {edit.stored}" in edit.stub
    for part in fitted.report.dropped:
        assert json.loads(saved[part.stored or ""]) == messages[part.start : part.stop]


@pytest.mark.parametrize("budget", [0, -1, True, math.nan, math.inf, 0.5])
def test_what_is_no_budget(budget: Any) -> None:
    with pytest.raises(BudgetError, match=r"max_tokens: expected a number of tokens, 1 or more, got"):
        fit([USER], budget)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"low_water": 1.5}, ValueError, "low_water: expected a share, 0 to 1, got 1.5"),
        ({"low_water": True}, TypeError, "low_water: expected a share, 0 to 1, got True"),
        ({"policy": PrunePolicy()}, TypeError, "policy: expected a FitPolicy, got `PrunePolicy`"),
        ({"used": -1}, BudgetError, "used: expected a number of tokens, 0 or more, got -1"),
        ({"store": object()}, TypeError, "store: expected something with a method save"),
        ({"form": "gemini"}, ValueError, "form: expected 'auto', 'openai' or 'anthropic', got 'gemini'"),
        ({"tools": 5}, MessageTypeError, "Expected a list, got `int` - at `tools`"),
        ({"system": 5}, MessageTypeError, "at `system`"),
    ],
)
def test_arguments_that_mean_nothing(options: Options, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        fit([USER, *steps(9)], 1_000, **options)


def test_a_message_that_cannot_be_read_is_named() -> None:
    with pytest.raises(MessageTypeError, match=r"at `messages\[3\]\.content`"):
        fit([USER, *steps(1), {"role": "user", "content": 5}], 10)


def test_a_report_is_plain_data() -> None:
    messages = [says("user", 3_000), *steps(6), USER, *steps(12, first=6), *read(20, 20_000)]
    report = fit(messages, 14_000).report
    data = json.loads(json.dumps(report.as_dict()))
    assert data["changed"] is True
    assert data["after"] == report.after
    assert len(data["dropped"]) == len(report.dropped)
    assert [edit["index"] for edit in data["stubs"]] == [edit.index for edit in report.stubs]
    assert pickle.loads(pickle.dumps(report)) == report
    assert str(report).splitlines()[0] == f"{report.before:,} tokens before, {report.after:,} after, of 14,000"
    assert len(str(report).splitlines()) == 4


# ------------------------------------------------------------------------------------- keep_last and remove


@settings(max_examples=settings().max_examples // 5)
@given(sessions, st.integers(1, 6))
def test_the_newest_steps(messages: list[Message], n_steps: int) -> None:
    mended = ctxfast.repair(messages).messages
    fitted = keep_last(messages, n_steps)
    starts = ctxfast.step_starts(mended)
    report = fitted.report
    assert {problem.code for problem in validate(fitted.messages)} <= {"no_user_message"}
    assert report.after == ctxfast.count_tokens(fitted.messages) <= report.before == ctxfast.count_tokens(mended)
    if len(starts) < n_steps:
        assert not report.dropped
        return
    start = starts[-n_steps]
    tail = mended[start:]
    assert fitted.messages[len(fitted.messages) - len(tail) :] == tail
    turns = [turn for turn in ctxfast.turn_starts(mended) if turn < start]
    tasks = [index for index, message in enumerate(mended) if has_user_text(message)][-1:]
    wanted = {*turns[-1:], *(task for task in tasks if task < start)}
    assert set(report.pinned) == {index for index in wanted if mended[index]["role"] != "system"}


def test_keep_last_takes_a_number_of_steps() -> None:
    messages = [says("system", 50), USER, *steps(3), NEXT, *steps(2, first=3)]
    assert kept_of(keep_last(messages, 1), messages) == [0, 8, 11, 12]
    assert kept_of(keep_last(messages, 3), messages) == [0, 1, 6, 7, 8, 9, 10, 11, 12]
    assert kept_of(keep_last(messages, 9), messages) == list(range(13))
    with pytest.raises(ValueError, match="n_steps: expected a whole number, 1 or more, got 0"):
        keep_last(messages, 0)
    with pytest.raises(TypeError, match="n_steps: expected a whole number, 1 or more, got True"):
        keep_last(messages, True)


@settings(max_examples=settings().max_examples // 5)
@given(sessions, st.data())
def test_removed_calls_go_with_their_results(messages: list[Message], data: st.DataObject) -> None:
    mended = ctxfast.repair(messages).messages
    ids = sorted({call for message in mended for call in calls_of(message) if call})
    chosen = data.draw(st.lists(st.sampled_from(ids), unique=True)) if ids else []
    new = remove(mended, chosen).messages
    assert {problem.code for problem in validate(new)} <= {"no_user_message"}
    left = [call for message in new for call in calls_of(message)]
    assert not set(left) & set(chosen)
    assert left == [call for message in mended for call in calls_of(message) if call not in chosen]
    assert sum(len(results_of(message)) for message in new) == len(pairing(new).pairs)
    before, after = ("".join(text_of(message) for message in some if has_user_text(message)) for some in (mended, new))
    assert before == after
    if not chosen:
        assert new == mended


def test_remove_says_what_it_did() -> None:
    messages = [USER, *steps(3)]
    removed = remove(messages, ["c1", "unknown"])
    assert removed.messages == [*messages[:3], *messages[5:]]
    assert kept_of(removed, messages) == [0, 1, 2, 5, 6]
    assert [(fix.code, fix.index, fix.call_id) for fix in removed.report.items] == [
        ("removed", 3, "c1"),
        ("empty_message", 3, ""),
        ("removed", 4, "c1"),
    ]
    calls = [*messages[1]["tool_calls"], *messages[3]["tool_calls"]]
    two = {"role": "assistant", "content": "Both.", "tool_calls": calls}
    together = [USER, two, messages[2], messages[4]]
    assert remove(together, {"c0"}).messages == [USER, {**two, "tool_calls": calls[1:]}, messages[4]]
    for ids in ("c1", 5, [5]):
        with pytest.raises(TypeError, match="ids: expected"):
            remove(messages, ids)  # type: ignore[arg-type]
