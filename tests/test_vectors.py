"""The vectors of the first design (PicoClaw): its estimator bit by bit, its cuts, and what users reported.

The files in `vectors/` hold inputs that we wrote and the outputs of PicoClaw's code, or the outcome that its
users missed. Where our rules differ on purpose, the test says so.
"""

from __future__ import annotations

import copy
import re
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cases import by_length, calls_of, check_tail, counters, get, load_vectors, pairing, splits_a_pair, two_and_a_half

import ctxfast
from ctxfast import BudgetError, ContextBudget, ContextManager, OutputStore, PrunePolicy, compat, truncate_tool_output

Entry = dict[str, Any]

ESTIMATES: list[Entry] = load_vectors("picoclaw_estimator.json")
TURNS: list[Entry] = load_vectors("picoclaw_turns.json")
FRESH_TAIL: Entry = load_vectors("picoclaw_freshtail.json")
PRUNE: list[Entry] = load_vectors("picoclaw_prune.json")
REPROS: list[Entry] = load_vectors("picoclaw_issue_repros.json")


def three_counters(package: ModuleType) -> list[Any]:
    make = counters(package)
    return [make.picoclaw("2.5"), make.picoclaw("4.0"), two_and_a_half(package)]


def named(entries: list[Entry], key: str = "name") -> pytest.MarkDecorator:
    """Parametrize over entries, each under its name."""
    return pytest.mark.parametrize("entry", entries, ids=[entry[key] for entry in entries])


# -------------------------------------------------------------------------------------------------- estimator


@named(ESTIMATES)
def test_estimator_bit_by_bit(package: ModuleType, entry: Entry) -> None:
    upstream, fork, _ = three_counters(package)
    if entry["message"] is None:
        assert fork.tools(entry["tools"]) == entry["expected_tokens"]
        assert upstream.tools(entry["tools"]) == entry["expected_tokens_upstream_2_5"]
    else:
        assert fork.message(entry["message"]) == entry["expected_tokens"]
        assert upstream.message(entry["message"]) == entry["expected_tokens_upstream_2_5"]


@named(ESTIMATES)
def test_estimator_under_its_first_names(entry: Entry) -> None:
    if entry["message"] is None:
        assert compat.EstimateToolDefsTokens(entry["tools"]) == entry["expected_tokens"]
    else:
        assert compat.EstimateMessageTokens(entry["message"]) == entry["expected_tokens"]


def test_a_list_costs_the_plain_sum(package: ModuleType) -> None:
    messages = [entry["message"] for entry in ESTIMATES if entry["message"] is not None]
    tools = next(entry["tools"] for entry in ESTIMATES if entry["name"] == "tools_three")
    for version, key in (("4.0", "expected_tokens"), ("2.5", "expected_tokens_upstream_2_5")):
        expected = sum(entry[key] for entry in ESTIMATES if entry["message"] is not None)
        of_tools = next(entry[key] for entry in ESTIMATES if entry["name"] == "tools_three")
        counter = counters(package).picoclaw(version)
        assert counter.messages(messages) == expected
        assert counter.messages(messages, tools) == expected + of_tools


# ------------------------------------------------------------------------------------------------------ turns


@named(TURNS)
def test_role_mode_cuts_where_picoclaw_does(package: ModuleType, entry: Entry) -> None:
    for target, expected in entry["find_safe_boundary"].items():
        assert package.find_safe_cut(entry["messages"], int(target), mode="role") == expected, target


@named(TURNS)
def test_turn_starts(package: ModuleType, entry: Entry) -> None:
    expected = entry["turn_starts"]
    if entry["name"] == "user_between_call_and_result":
        # PicoClaw: every message of role user starts a turn. Ours: one that arrives while a tool runs belongs
        # to the step of the call, because a cut there would part the call from its result.
        assert expected == [0, 2]
        expected = [0]
    assert package.turn_starts(entry["messages"]) == expected


@named(TURNS)
def test_safe_cuts_part_no_pair(package: ModuleType, entry: Entry) -> None:
    messages, n = entry["messages"], len(entry["messages"])
    inner = [cut for cut in range(n) if not splits_a_pair(messages, cut)]
    cuts = package.safe_cuts(messages)
    if entry["name"] == "missing_result_at_end":
        assert cuts == inner  # the last call is still running: its result is to come, n is no cut
    else:
        assert cuts == [*inner, n]
    # PicoClaw calls the index of a user message safe: ours is then safe too, unless it lies inside a pair.
    theirs = [cut for cut in range(n) if entry["is_safe_boundary"][str(cut)]]
    inside = [2] if entry["name"] == "user_between_call_and_result" else []
    assert [cut for cut in theirs if cut not in cuts] == inside


# ------------------------------------------------------------------------------------------------- fresh tail


@named(FRESH_TAIL["budget_table"], key="context_window")
def test_tail_budget_of_the_first_design(entry: Entry) -> None:
    assert compat.CalculateFreshTailBudget(entry["context_window"]) == entry["tail_budget"]


@named([entry for entry in FRESH_TAIL["budget_table"] if entry["context_window"] >= 1], key="context_window")
def test_our_tail_budget_is_the_same_but_never_above_half(package: ModuleType, entry: Entry) -> None:
    half = entry["context_window"] // 2
    assert package.fresh_tail_budget(entry["context_window"]) == max(1, min(entry["tail_budget"], half))


def as_messages(items: list[Entry]) -> list[Entry]:
    """Messages with exactly the tokens that the items have, for a counter that gives each text its length.

    A summary becomes a system message: it is the framework that speaks, and as a user message it would open a
    turn that no user opened.
    """
    messages: list[Entry] = []
    for index, item in enumerate(items):
        role, tokens = item["role"], item["tokens"]
        message: Entry = {"role": "system" if role == "summary" else role, "content": "x" * tokens}
        if item.get("tool_use"):
            call = {"id": f"call_{index}", "type": "function", "function": {"name": "f", "arguments": "{}"}}
            message.update(content="x" * (tokens - len("f{}")), tool_calls=[call])
        if role == "tool":
            message["tool_call_id"] = f"call_{index - 1}"
        messages.append(message)
    return messages


@pytest.mark.parametrize("which", ["budget", "tail_budget"])
@named(FRESH_TAIL["cases"])
def test_tail_of_the_assembled_cases(package: ModuleType, which: str, entry: Entry) -> None:
    messages = as_messages(entry["items"])
    counter = by_length(package)
    assert [counter.message(message) for message in messages] == [item["tokens"] for item in entry["items"]]
    before = copy.deepcopy(messages)
    tail = package.select_fresh_tail(messages, entry[which], counter=counter)
    leading = next((i for i, message in enumerate(messages) if message["role"] != "system"), len(messages))
    check_tail(messages, tail, total=counter.messages(tail.messages[min(leading, tail.start) :]))
    assert tail.tokens <= entry[which] or tail.over_budget
    assert messages == before


TAILS = [  # case, budget, start of the tail, pinned, tokens: worked out by hand from the items
    ("plain_10_turns_small_window", "budget", 16, (), 800),  # two turns of 400; a third is 1,200
    ("no_user_messages", "budget", 20, (), 200),  # 20 of 10 tokens
    ("one_over", "budget", 2, (), 401),  # the reply before would need its user message as well: 601
    ("tail_cut_lands_on_tool", "budget", 3, (0,), 150),  # 10 for the user message + 140; the step: + 110
    ("main_wipes_long_turn", "budget", 17, (0,), 7_490),  # 50 + 12 rounds of 620
    ("single_user_then_60_rounds", "budget", 71, (0,), 15_550),  # 50 + 25 rounds of 620
    ("pr_torn_third_turn", "budget", 5, (2,), 1_150),  # of turn 3 all but the step of 1,520 fits
    ("pr_reordered_hole", "tail_budget", 5, (2,), 400),  # all in order, without the step of 5,020
    ("huge_new_user", "tail_budget", 4, (), 7_000),  # over budget: user text is kept
]


@pytest.mark.parametrize(("name", "which", "start", "pinned", "tokens"), TAILS)
def test_tail_worked_out_by_hand(
    package: ModuleType, name: str, which: str, start: int, pinned: tuple[int, ...], tokens: int
) -> None:
    entry = next(entry for entry in FRESH_TAIL["cases"] if entry["name"] == name)
    tail = package.select_fresh_tail(as_messages(entry["items"]), entry[which], counter=by_length(package))
    assert (tail.start, tail.pinned, tail.tokens) == (start, pinned, tokens)
    assert tail.over_budget == (tokens > entry[which])


@named(FRESH_TAIL["over_budget"])
def test_over_budget(package: ModuleType, entry: Entry) -> None:
    """The counting half of PicoClaw's check: messages + tools + output (+ buffer) above the window."""
    messages = [{"role": "user", "content": "x" * length} for length in entry["content_lens"] or []]
    upstream, fork, _ = (
        counter.messages(messages, entry["tools"]) + entry["max_tokens"] for counter in three_counters(package)
    )
    assert (upstream > entry["context_window"]) == entry["over_upstream_2_5_no_buffer"]
    assert (fork + entry["safety_buffer"] > entry["context_window"]) == entry["over_fork_4_0_with_buffer"]


# ----------------------------------------------------------------------------------------------- pruning


@named(PRUNE)
def test_pruning_to_the_letter(entry: Entry) -> None:
    """What the first design's code does, its mistakes included."""
    messages = entry["messages"]
    before = copy.deepcopy(messages)
    arguments = entry["protected_turns"], entry["prune_threshold"]
    result = compat.PruneToolOutputs(messages, *arguments, unit="messages")
    changed = [index for index, message in enumerate(result) if message["content"] != messages[index]["content"]]
    assert changed == entry["plan_pruned"]
    assert all(result[index] == {**messages[index], "content": entry["plan_stub"]} for index in changed)
    assert (result is messages) == (entry["plan_returns_same_list"] or not messages)
    assert messages == before


@named(PRUNE)
def test_pruning_under_its_first_name(entry: Entry) -> None:
    """By turns: as valid as before, never larger, nothing of the newest turns touched."""
    messages = entry["messages"]
    result = compat.PruneToolOutputs(messages, entry["protected_turns"], entry["prune_threshold"])
    assert pairing(result).faults(range(len(messages))) == pairing(messages).faults(range(len(messages)))
    changed = [index for index, message in enumerate(result) if message != messages[index]]
    if entry["protected_turns"] <= 0:
        assert result is messages
    starts = ctxfast.turn_starts(messages)[-max(entry["protected_turns"], 1) :]
    assert all(index < starts[0] for index in changed)
    assert len(changed) >= entry["prune_threshold"] or result is messages
    assert all(len(result[index]["content"]) < len(messages[index]["content"]) for index in changed)


def test_pruning_by_something_else() -> None:
    with pytest.raises(ValueError, match="unit"):
        compat.PruneToolOutputs([], 1, 1, unit="steps")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------ reported failures


def repro(name: str) -> Entry:
    (entry,) = [entry for entry in REPROS if entry["id"] == name]
    return entry


def check_must_keep(messages: list[Entry], kept: list[Any], indices: list[int]) -> None:
    for index in indices:
        assert any(message is messages[index] for message in kept), index


def test_pair_split_midpoint(package: ModuleType) -> None:
    entry = repro("pair_split_midpoint")
    messages, expect = entry["messages"], entry["expect"]
    for target, expected in expect["find_safe_boundary"].items():
        cut = package.find_safe_cut(messages, int(target), mode="role")
        assert cut == expected
        assert not pairing(messages[cut:]).faults(range(len(messages)))
        check_must_keep(messages, messages[cut:], expect["must_keep"])


def test_pair_split_keep_last_4(package: ModuleType) -> None:
    messages = repro("pair_split_keep_last_4")["messages"]  # U A[a,b] T[a] T[b] A U A
    assert package.find_safe_cut(messages, 3, mode="role") == 5  # the last four would start at T[b]
    assert package.safe_cuts(messages) == [0, 1, 4, 5, 6, 7]
    for budget in range(1, 100):
        tail = package.select_fresh_tail(messages, budget, counter=counters(package).picoclaw("4.0"))
        check_tail(messages, tail)


def test_user_message_inside_round(package: ModuleType) -> None:
    entry = repro("user_message_inside_round")
    for cut, safe in entry["expect"]["is_safe_boundary"].items():
        assert (int(cut) in package.safe_cuts(entry["messages"])) == safe


def test_first_message_rewritten(package: ModuleType) -> None:
    messages = repro("first_message_rewritten")["messages"]
    before = copy.deepcopy(messages)
    for budget in range(1, 60):
        tail = package.select_fresh_tail(messages, budget, min_turns=0, counter=two_and_a_half(package))
        assert all(any(kept is message for message in messages) for kept in tail.messages)
    assert messages == before


def test_fresh_tail_over_budget(package: ModuleType) -> None:
    entry = repro("fresh_tail_over_budget")
    messages, expect = entry["messages"], entry["expect"]
    usable = 131_072 - 32_768
    counter = two_and_a_half(package)  # a turn: 21 + a step with a result of 16,006 + 21
    budget = package.fresh_tail_budget(usable)
    assert budget == 8_000
    tail = package.select_fresh_tail(messages, budget, counter=counter)
    check_tail(messages, tail, counter.messages(tail.messages))
    assert tail.tokens <= budget  # the last reply and its user message; the step of 16,000 stays out
    assert (tail.start, tail.pinned, tail.split_turn, tail.over_budget) == (79, (76,), True, False)
    whole = package.select_fresh_tail(messages, budget, max_tokens=usable, counter=counter)
    check_tail(messages, whole, counter.messages(whole.messages))
    assert (whole.start, whole.turns, whole.over_budget) == (72, 2, False)
    assert budget < whole.tokens <= expect["max_tokens_total"]


def test_long_single_turn(package: ModuleType) -> None:
    entry = repro("long_single_turn")
    messages, expect = entry["messages"], entry["expect"]
    for counter in three_counters(package):
        tail = package.select_fresh_tail(messages, expect["max_tokens_total"], counter=counter)
        check_tail(messages, tail, counter.messages(tail.messages))
        assert tail.tokens <= expect["max_tokens_total"]
        check_must_keep(messages, tail.messages, expect["must_keep"])


def test_media_counted(package: ModuleType) -> None:
    messages = repro("media_counted")["messages"]
    for counter in three_counters(package):
        assert counter.messages(messages) + 1_024 > 8_192


def test_max_tokens_is_not_window(package: ModuleType) -> None:
    messages = repro("max_tokens_is_not_window")["messages"]
    for counter in three_counters(package):
        assert counter.messages(messages) + 8_192 <= 200_000


@pytest.mark.parametrize("name", ["system_blocks_ignored", "arguments_and_reasoning_ignored"])
def test_estimate_at_least(package: ModuleType, name: str) -> None:
    entry = repro(name)
    for counter in three_counters(package):
        assert counter.message(entry["messages"][0]) >= entry["expect"]["estimate_at_least"]


def test_cjk_underestimate(package: ModuleType) -> None:
    """Four characters a token would be 250; OpenAI's newer tokenizer has one for two of these characters."""
    entry, made = repro("cjk_underestimate"), counters(package)
    (message,) = entry["messages"]
    assert made.default().message(message) == 504
    for name in ("gpt-4-turbo", "claude-sonnet-4-5"):
        assert entry["expect"]["estimate_at_least"] <= made.for_model(name).message(message) < 1_300


def test_foreign_id_characters(package: ModuleType) -> None:
    messages = repro("foreign_id_characters")["messages"]
    pruned = package.prune_tool_outputs(messages, policy=PrunePolicy.seed(), prices=None)
    check_must_keep(messages, pruned.messages, repro("foreign_id_characters")["expect"]["must_keep"])
    assert not pairing(pruned.messages).faults(range(len(messages)))


def test_base64_in_tool_text(package: ModuleType) -> None:
    entry = repro("base64_in_tool_text")
    pruned = package.prune_tool_outputs(entry["messages"], 1, prices=None, protected_steps=1, protected_tokens=0)
    assert [item.index for item in pruned.report.items] == entry["expect"]["pruned"]
    assert pruned.report.after < 200


def test_prefix_churn(package: ModuleType) -> None:
    messages = repro("prefix_churn")["messages"]
    policy = PrunePolicy.seed()
    starts = [*package.turn_starts(messages)[1:], len(messages)]
    last: list[Any] = []
    for end in starts:
        pruned = package.prune_tool_outputs(messages[:end], policy=policy).messages
        assert package.prune_tool_outputs(pruned, policy=policy).messages == pruned
        changed = [index for index, message in enumerate(last) if message != pruned[index]]
        assert len(changed) <= 1  # what has newly left the protected turns
        last = pruned
    assert sum(new is not old for new, old in zip(last, messages, strict=True)) == len(starts) - 2


def test_stub_mimicry(package: ModuleType) -> None:
    entry = repro("stub_mimicry")
    messages = entry["messages"]
    pruned = package.prune_tool_outputs(messages, policy=PrunePolicy.seed()).messages
    (index,) = [index for index, message in enumerate(pruned) if message is not messages[index]]
    assert pruned[index]["role"] == entry["expect"]["stub_in_role"]
    assert not any(part in pruned[index]["content"] for part in entry["expect"]["stub_must_not_contain"])


def test_user_messages_survive(package: ModuleType) -> None:
    entry = repro("user_messages_survive")
    for policy in (PrunePolicy.seed(), PrunePolicy.anthropic_api(), PrunePolicy.thrifty()):
        pruned = package.prune_tool_outputs(entry["messages"], policy=policy, prices=None).messages
        assert all(new is old for new, old in zip(pruned, entry["messages"], strict=True))


def test_original_destroyed(package: ModuleType) -> None:
    used = [*three_counters(package), by_length(package)]
    calls: list[Callable[[Any], Any]] = [
        package.atoms,
        package.turn_starts,
        package.step_starts,
        package.safe_cuts,
        lambda messages: package.find_safe_cut(messages, 2),
        lambda messages: package.find_safe_cut(messages, 2, mode="role"),
        lambda messages: package.select_fresh_tail(messages, 20),
        lambda messages: package.select_fresh_tail(messages, 2_000, counter=used[0]),
        package.count_tokens,
        package.repair,
        lambda messages: package.repair(messages, "anthropic"),
        lambda messages: package.repair(messages, strict_predecessor=True),
        lambda messages: package.prune_tool_outputs(messages, policy=PrunePolicy.seed()),
        *[counter.messages for counter in used],
        *[lambda messages, counter=counter: counter.request({"messages": messages}) for counter in used],
        *[lambda messages, counter=counter: counter.fits(messages, 50) for counter in used],
    ]
    for entry in REPROS:  # every function leaves every list as it was, and the messages are the same objects
        messages = entry["messages"]
        before, same = copy.deepcopy(messages), list(messages)
        for call in calls:
            call(messages)
        assert messages == before
        assert all(message is one for message, one in zip(messages, same, strict=True))


def test_threshold_confusion() -> None:
    """A soft limit of 80 % of the window lies above the hard limit: it would be shown and never reached."""
    entry = repro("threshold_confusion")
    budget = ContextBudget(204_800, max_output_tokens=128_000)
    assert budget.hard == entry["expect"]["hard_limit"]
    with pytest.raises(BudgetError, match=r"soft_limit: 163,840 tokens can never be reached .* 76,800"):
        ContextBudget(204_800, max_output_tokens=128_000, soft_limit=entry["expect"]["soft_limit"])
    shown = [" ".join(line.split()) for line in str(budget).splitlines()]
    assert {"hard limit 76,800 context window less output reserve", "usable 65,280 soft limit"} <= set(shown)


@pytest.mark.parametrize("structured", [True, False])
def test_summary_without_tool_context(structured: bool) -> None:
    """Names and arguments of tools and their results reach whoever summarises, with a model or without."""
    entry = repro("summary_without_tool_context")
    prompt = ctxfast.build_summary_prompt(entry["messages"], structured=structured)
    assert all(text in prompt for text in entry["expect"]["prompt_contains"])
    assert "ORCHID_42" in ctxfast.fallback_summary(entry["messages"])


def test_summary_accepts_only_target() -> None:
    entry = repro("summary_accepts_only_target")
    source, accept = ctxfast.count_tokens(entry["messages"]), entry["expect"]["accept"]
    text = "word " * 199 + "word"
    target = ctxfast.TokenCounter.default().text(text)
    for name, summary, limit in (
        ("at_target", text, target),
        ("target_plus_1", text, target - 1),
        ("empty", "", target),
        ("longer_than_source", text * 10, target * 20),
    ):
        check = ctxfast.check_summary(summary, source, target_tokens=limit, structured=False)
        assert check.ok is accept[name], name


@pytest.mark.parametrize("structured", [True, False])
def test_old_summary_lost(structured: bool) -> None:
    entry = repro("old_summary_lost")
    prompts: list[str] = []

    def summarize(prompt: str) -> str:
        prompts.append(prompt)
        return ""

    ctxfast.summarise(entry["messages"], "OLDFACTS", summarize=summarize)
    assert entry["expect"]["previous_summary_in_some_prompt"] is True
    assert all("OLDFACTS" in prompt for prompt in prompts)
    assert len(prompts) == 2
    prompt = ctxfast.build_summary_prompt(entry["messages"], "OLDFACTS", structured=structured, max_tokens=700)
    assert "OLDFACTS" in prompt
    assert "OLDFACTS" in ctxfast.fallback_summary(entry["messages"], "OLDFACTS")


MENDED: dict[str, list[int | None]] = {
    # name: messages of the new list by their old indices, None for one that is changed or made up
    "interrupted_tool_call": [0, 1, 2, None, 3, 4, 5],
    "ids_reused_across_turns": [0, 1, 2, 3, 4, 5, 6, 7],
    "duplicate_results": [0, 1, 2, 4],
    "blank_tool_name": [0, 3, 4],
    "blank_call_id": [0, None, None, 3, 4],  # a result is worth more than an id: both get one
    "same_id_twice_in_one_message": [0, 1, 2, 3, 4],  # OpenAI takes it; in Anthropic's form the second is renamed
    "user_message_inside_round": [0, 1, 3, 2, 4],
    "foreign_id_characters": [0, 1, 2, 3],
}


@pytest.mark.parametrize("name", MENDED)
def test_what_users_reported_is_mended(package: ModuleType, name: str) -> None:
    entry = repro(name)
    messages, expect = entry["messages"], entry["expect"]
    for form in ("openai", "anthropic"):
        repaired = package.repair(messages, form)
        assert package.validate(repaired.messages, form) == []
        assert package.repair(repaired.messages, form).report.changed is False
        if form == "openai":
            places = {id(message): index for index, message in enumerate(messages)}
            assert [places.get(id(message)) for message in repaired.messages] == MENDED[name]
            if name != "blank_call_id":
                check_must_keep(messages, repaired.messages, expect.get("must_keep", []))
                assert not {id(messages[index]) for index in expect.get("must_drop", [])} & set(
                    map(id, repaired.messages)
                )
    ids = [call for message in repaired.messages for call in calls_of(message)]
    assert name != "same_id_twice_in_one_message" or len(set(ids)) == 2


def test_a_huge_file_that_was_read(tmp_path: Path) -> None:
    (entry,) = (entry for entry in REPROS if get(entry, "id") == "huge_read_file")
    expect, text = entry["expect"], entry["messages"][2]["content"]
    numbers = re.fullmatch(r".*max_lines=(\d+), max_bytes=(\d+)\)", entry["operation"])
    assert numbers is not None
    store = OutputStore(tmp_path)
    result = truncate_tool_output(text, int(numbers[1]), int(numbers[2]), "read_file", store=store)
    assert len(result.preview.encode()) <= expect["preview_bytes_at_most"]  # which is valid UTF-8, too
    assert len(result.preview.split("\n")) <= expect["preview_lines_at_most"]
    assert text.startswith(result.preview.partition("[Tool output truncated")[0])
    assert (result.full_path is not None) is expect["full_text_on_disk"]
    assert Path(result.full_path or "").read_text() == text


def test_few_huge_messages_are_compacted() -> None:
    """Whatever their size: when it is asked for, and when the window is full."""
    (entry,) = (entry for entry in REPROS if get(entry, "id") == "few_huge_messages")
    messages = entry["messages"]
    used = ctxfast.count_tokens(messages)
    for window, is_asked in ((10 * used, True), (used, False)):
        manager = ContextManager(ContextBudget(window))
        if is_asked:
            manager.request_compaction()
        assert ctxfast.count_tokens(manager.prepare(messages)) < used * 2 // 3


COVERED = {
    *MENDED,
    "pair_split_midpoint",
    "pair_split_keep_last_4",
    "first_message_rewritten",
    "fresh_tail_over_budget",
    "long_single_turn",
    "media_counted",
    "max_tokens_is_not_window",
    "system_blocks_ignored",
    "arguments_and_reasoning_ignored",
    "cjk_underestimate",
    "original_destroyed",
    "base64_in_tool_text",  # its second half: pruning
    "prefix_churn",
    "stub_mimicry",
    "user_messages_survive",  # its first half: pruning
    "threshold_confusion",
    "huge_read_file",
    "summary_without_tool_context",
    "summary_accepts_only_target",
    "old_summary_lost",
    "few_huge_messages",
}


def test_every_reported_failure_is_covered() -> None:
    assert {get(entry, "id") for entry in REPROS} == COVERED
