"""Where rules can clash: the smallest list that shows each, and the answer, for what exists of the package.

The lines are those of `evidence/contradictions.md` in the optional data; each test is named after its line.
Sizes are in characters, which the counter here takes for tokens.
"""

from __future__ import annotations

import itertools
import math
import re
import time
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
import test_prune
from cases import by_length, check_tail, counters, pairing, talk

import ctxfast
from ctxfast import BudgetError, CannotFitError, OutputStore


def select(package: ModuleType, messages: list[Any], budget: int, **options: Any) -> Any:
    """A fresh tail by length; what must be true of every tail is checked on the way."""
    tail = package.select_fresh_tail(messages, budget, counter=by_length(package), **options)
    check_tail(messages, tail)
    return tail


# --------------------------------------------------------------------------------------------- the fresh tail


def test_cut_in_an_older_turn(package: ModuleType) -> None:
    """The suffix starts with an assistant: the head is pinned; if it does not fit, the cut moves to U2."""
    after_the_head = "A[a]=20 T[a]=20 A[b]=20 T[b]=20 A=20 U2=20 A[c]=20 T[c]=20"
    messages = talk(f"U1=20 {after_the_head}")
    tail = select(package, messages, budget=8 * 20)  # U1 and everything from A[b] on; the step of a is 40 more
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (3, (0,), 140, 2, True)
    assert tail.messages == [messages[0], *messages[3:]]

    messages = talk(f"U1=61 {after_the_head}")
    tail = select(package, messages, budget=7 * 20)  # 60 from U2 on, 80 with A: U1 does not fit beside them
    assert (tail.start, tail.pinned, tail.tokens, tail.turns, tail.split_turn) == (6, (), 60, 1, False)
    tail = select(package, talk(f"U1=60 {after_the_head}"), budget=7 * 20)
    assert (tail.start, tail.pinned, tail.tokens) == (5, (0,), 140)


def test_task_larger_than_the_budget(package: ModuleType) -> None:
    """User text is never clamped. Fitting raises `CannotFitError`; a tail says that it is over budget."""
    messages = talk("U=20000 A[a]=0 T[a]=50")
    with pytest.raises(CannotFitError, match=r"20,051 are needed, 20,000 of them pinned") as caught:
        package.fit_messages(named(messages), 8_000, counter=by_length(package))
    assert (caught.value.budget, caught.value.pinned, caught.value.needed) == (8_000, 20_000, 20_051)
    assert caught.value.largest == "messages[0] (user): 20,000 tokens"
    tail = select(package, messages, budget=8_000)
    assert (tail.start, tail.pinned, tail.tokens, tail.over_budget) == (1, (0,), 20_051, True)
    assert tail.messages == messages


def test_stateless_low_water(package: ModuleType) -> None:
    """Steps of 1,000 tokens in a budget of 100,000, low water 65 %: a new prefix each 36th call, and not each one."""
    messages = talk("U=10" + " A=1000" * 200)
    count = by_length(package)
    starts = []
    for steps in range(95, 201 if package is ctxfast else 140):
        fitted = package.fit_messages(messages[: steps + 1], 100_000, low_water=0.65, counter=count)
        assert fitted.report.after <= 100_000
        assert fitted.messages[0] is messages[0]
        starts.append(steps - len(fitted.messages) + 2)
    changes = [steps for steps, (one, other) in enumerate(itertools.pairwise(starts), 96) if one != other]
    assert changes == [100, 136, 172][: len(changes)]
    assert set(starts) <= {1, 37, 73, 109}


def test_estimator_not_monotone(package: ModuleType) -> None:
    """A text that is cut can have more tokens than before: then it stays, and what helps is sought elsewhere."""

    def jumpy(text: str) -> int:
        return 500 if "truncated" in text or "pruned" in text else len(text)

    count = counters(package).from_callable(jumpy, message_overhead=0)
    messages = named(talk("U=10 A[a]=1 T[a]=400 A[b]=1 T[b]=300"))
    fitted = package.fit_messages(messages, 400, counter=count)
    assert fitted.messages == [messages[0], *messages[3:]]
    with pytest.raises(CannotFitError):
        package.fit_messages(messages, 200, counter=count)


def test_clamp(package: ModuleType) -> None:
    assert package.fresh_tail_budget(4_000) == 2_000
    assert package.fresh_tail_budget(1_000) == 500


def test_additivity_against_safety(package: ModuleType) -> None:
    """A margin that is rounded up for each part is more than one for the total: it is added once."""
    safe, middle = (counters(package).estimator("claude_v3", safety=safety) for safety in (0.95, 0.5))
    messages = talk("U=40 A=40 U2=40 A2=40") * 10
    parts = sum(safe.message(message) for message in messages)
    total = sum(middle.message(message) for message in messages)
    assert middle.messages(messages) == total
    assert safe.messages(messages) == math.ceil(total + total * 0.067 + 0.2 * math.sqrt(total))
    assert parts - len(messages) * 2 <= safe.messages(messages) < parts


def test_zero_and_none(package: ModuleType) -> None:
    """A budget of 0 is an error; 0 tokens fit the empty text only. (A window of 0 is unknown, later.)"""
    with pytest.raises(BudgetError):
        package.select_fresh_tail(talk("U A"), 0)
    with pytest.raises(BudgetError):
        package.fresh_tail_budget(0)
    counter = counters(package).default()
    assert counter.fits("", 0)
    assert not counter.fits("a", 0)
    assert not counter.fits({"role": "user", "content": ""}, 0)  # a message has a frame
    with pytest.raises(TypeError):
        counter.fits("", None)


def test_dropping_steps_under_an_old_head(package: ModuleType) -> None:
    """U1 kept and A1 dropped would put two users side by side: a tail takes whole turns, newest first."""
    messages = talk("U1=10 A=10 U2=10 A=10 U3=10")
    for budget in range(1, 60):
        tail = select(package, messages, budget)
        roles = [message["role"] for message in tail.messages]
        assert all(one != other for one, other in itertools.pairwise(roles)), budget


def test_thinking(package: ModuleType) -> None:
    """Whole steps of the current turn may go while the latest assistant message holds signed thinking."""
    thinking = {"type": "thinking", "thinking": "hmm", "signature": "c2ln"}
    messages = talk("U A[a] U[a] A[b] T[b]", form="anthropic")
    messages[2] = talk("T[a]", form="anthropic")[0]
    messages[3]["content"].insert(0, thinking)
    tail = select(package, messages, budget=8)
    assert (tail.start, tail.pinned) == (3, (0,))
    assert tail.messages[1] is messages[3]
    assert tail.messages[1]["content"][0] is thinking
    assert tail.messages[2] is messages[4]  # and nothing comes between it and its results


def test_notes(package: ModuleType) -> None:
    """No omission note: a tail holds nothing that was not in the list."""
    messages = talk("S U1 A[a] T[a] A U2 A[b] T[b] A U3")
    for budget in range(1, 60):
        tail = select(package, messages, budget, min_turns=0)
        assert all(any(kept is message for message in messages) for kept in tail.messages)


# ---------------------------------------------------------------------------------------- pairing and cutting


def test_early_exit_against_the_pin(package: ModuleType) -> None:
    """All ids equal: the nearest open call across messages, in order inside one; the head is far back."""
    assert package.atoms(talk("A[x] A[x] T[x] T[x] U")) == [(0, 4), (4, 5)]
    # The first result answers the nearer call, so that with one result the older call stays open ...
    assert package.safe_cuts(talk("A[x] A[x] T[x] U")) == [0, 1, 3, 4]
    # ... which a later result would answer.
    assert package.safe_cuts(talk("A[x] A[x] T[x] A T[x] U")) == [0, 5, 6]
    assert package.safe_cuts(talk("A[x,x] T[x] T[x] U")) == [0, 3, 4]

    steps = 50_000 if package is ctxfast else 200  # the reference counts a tail anew for each step that it takes
    messages = talk("U=10") + talk("A[x]=1 T[x]=9") * steps
    before = time.perf_counter()
    tail = package.select_fresh_tail(messages, 510, counter=by_length(package))
    assert time.perf_counter() - before < 1
    assert (tail.start, tail.pinned, tail.tokens) == (2 * steps + 1 - 2 * 50, (0,), 510)
    assert tail.messages == [messages[0], *messages[-100:]]


def test_an_mixed_message(package: ModuleType) -> None:
    """The newest user text sits among results: when only the text survives it is a message of its own."""
    messages = talk("U A[a] U[a] A[b] T[b]", form="anthropic")
    assert package.atoms(messages) == [(0, 1), (1, 3), (3, 5)]
    tail = select(package, messages, budget=1)
    assert (tail.start, tail.pinned) == (3, (2,))  # the task; the head does not fit beside it
    assert tail.messages[0] == {"role": "user", "content": [{"type": "text", "text": "U[a]"}]}
    assert tail.messages[0]["content"][0] is messages[2]["content"][1]
    assert pairing(tail.messages).orphans == []
    assert messages == talk("U A[a] U[a] A[b] T[b]", form="anthropic")

    tail = select(package, messages, budget=18)  # A[b]{} (4 + 2), T[b] (4), U[a] (4), U (1): 15, with A[a] 25
    assert (tail.start, tail.pinned, tail.tokens) == (3, (0, 2), 15)
    assert tail.messages[0] is messages[0]


def test_an_safe_cut(package: ModuleType) -> None:
    """Index 2 has role user and is neither a safe cut nor a turn start; PicoClaw's rule says otherwise."""
    messages = talk("U A[a] U[a] A[b] T[b]", form="anthropic")
    assert package.safe_cuts(messages) == [0, 1, 3, 5]
    assert package.turn_starts(messages) == [0]
    assert package.find_safe_cut(messages, 2) == 1
    assert package.find_safe_cut(messages, 2, mode="role") == 2


def test_user_inside_a_round(package: ModuleType) -> None:
    """The index functions only say where cuts are safe: not between the call and its late result. `repair` moves it."""
    messages = talk("U A[a] U2 T[a] A")
    assert package.safe_cuts(messages) == [0, 1, 4, 5]
    assert package.atoms(messages) == [(0, 1), (1, 4), (4, 5)]
    assert package.turn_starts(messages) == [0]
    tail = select(package, messages, budget=3)  # A and the task, which is U2: the head does not fit beside it
    assert (tail.start, tail.pinned) == (4, (2,))
    assert package.repair(named(messages)).messages == named(talk("U A[a] T[a] U2 A"))
    assert package.fit_messages(named(messages), 10_000).messages == named(talk("U A[a] T[a] U2 A"))


def named(messages: list[Any]) -> list[Any]:
    """The same, with a name for each call: one without is no call for `repair`."""
    for message in messages:
        for call in message.get("tool_calls", ()):
            call["function"]["name"] = "f"
    return messages


def test_interleaved(package: ModuleType) -> None:
    assert package.atoms(talk("A[a] A[b] T[b] T[a] A")) == [(0, 4), (4, 5)]
    assert package.atoms(talk("A[a] A[b] T[a] T[b] A")) == [(0, 4), (4, 5)]
    assert package.step_starts(talk("A[a] A[b] T[b] T[a] A")) == [0, 4]


def test_live(package: ModuleType) -> None:
    """A list that ends in running calls is live: its last step is open. After user text it is not."""
    live = talk("U A[a,b] T[a]")
    assert package.safe_cuts(live) == [0, 1]
    assert package.atoms(live) == [(0, 1), (1, 3)]
    tail = select(package, live, budget=1)
    assert tail.messages == live  # nothing is made up for the call that is still running
    assert package.repair(named(live)).messages == live
    assert package.fit_messages(talk("A=500") + live, 100, counter=by_length(package)).messages == live

    broken_off = talk("U A[a] U2")
    assert package.safe_cuts(broken_off) == [0, 1, 2, 3]
    assert package.turn_starts(broken_off) == [0, 2]
    made_up = package.repair(named(broken_off)).messages
    assert [message["role"] for message in made_up] == ["user", "assistant", "tool", "user"]


def test_parallel_group(package: ModuleType) -> None:
    """Parallel calls of one message and all their results are kept or dropped together."""
    messages = talk("U A[a,b]=10 T[a]=30000 T[b]=10 A=10")
    assert package.atoms(messages) == [(0, 1), (1, 4), (4, 5)]
    tail = select(package, messages, budget=1_000)
    assert tail.start == 4
    tail = select(package, messages[:-1], budget=1_000)
    assert (tail.start, tail.over_budget) == (1, True)


# ----------------------------------------------------------------------------------------------- saved outputs


def test_exclusive_names(tmp_path: Path) -> None:
    """A name is made of the content, and a file is only ever made new: one that is there and equal is success."""
    store = OutputStore(tmp_path)
    first = store.save("text", "bash")
    assert first is not None
    before = store.path(first).stat()
    assert store.save("text", "bash") == first
    assert store.path(first).stat().st_ino == before.st_ino  # not written again
    store.path(first).write_text("tex!")  # the name, but not the content
    second = store.save("text", "bash")
    assert second not in (None, first)
    assert store.path(first).read_text() == "tex!"
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(f"ctxfast-{one}.txt" for one in (first, second))


# ------------------------------------------------------------------------------------------------- all the lines

TESTED = {
    '"auto" flips back': test_prune.test_a_batch_that_was_committed_stays,
    "What R is": test_prune.test_what_is_written_again,
    "Ranges": test_prune.test_a_read_that_is_covered_joins,
    "Small window": test_prune.test_with_a_budget_a_quarter_is_protected,
    "Superseded late": test_prune.test_superseded_late,
    "Zone accounting": test_prune.test_the_newest_tokens_are_protected,
    "Crossing result": test_prune.test_a_large_newest_step_uses_the_zone_up,
    "protected_turns with one turn": test_prune.test_the_newest_turns_are_protected,
    "Cut in an older turn": test_cut_in_an_older_turn,
    "Task larger than the budget": test_task_larger_than_the_budget,
    "Stateless low-water": test_stateless_low_water,
    "Estimator not monotone": test_estimator_not_monotone,
    "Clamp": test_clamp,
    "Additivity against safety": test_additivity_against_safety,
    "Zero and None": test_zero_and_none,
    "Dropping steps under an old head": test_dropping_steps_under_an_old_head,
    "Thinking": test_thinking,
    "Notes": test_notes,
    "Early exit against the pin": test_early_exit_against_the_pin,
    "An mixed message": test_an_mixed_message,
    "An safe cut": test_an_safe_cut,
    "User inside a round (OpenAI)": test_user_inside_a_round,
    "Interleaved": test_interleaved,
    "Live": test_live,
    "Parallel group": test_parallel_group,
    "Exclusive names": test_exclusive_names,
}


def test_every_line_is_tested(shared: Path) -> None:
    text = (shared / "evidence" / "contradictions.md").read_text(encoding="utf-8")
    assert set(TESTED) == set(re.findall(r"^- \*\*(.+?)\*\*:", text, flags=re.MULTILINE))
