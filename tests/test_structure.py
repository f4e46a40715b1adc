"""What belongs together in a list of messages, and where it can be cut, by examples.

`talk` (in `cases.py`) writes a conversation in short: `talk("U A[a] T[a]")` is a user message, an assistant
message with the call a, and its result.
"""

from __future__ import annotations

from types import ModuleType
from typing import Any

import pytest
from cases import pairing, splits_a_pair, talk

from ctxfast import MessageTypeError, MessageValueError


def test_the_notation() -> None:
    assert talk("S U A[a] T[a]=3") == [
        {"role": "system", "content": "S"},
        {"role": "user", "content": "U"},
        {
            "role": "assistant",
            "content": "A[a]",
            "tool_calls": [{"id": "a", "type": "function", "function": {"name": "", "arguments": ""}}],
        },
        {"role": "tool", "content": "xxx", "tool_call_id": "a"},
    ]
    assert talk("T[a,b]", form="anthropic") == [
        {
            "role": "user",
            "content": [
                {"type": "tool_result", "tool_use_id": "a", "content": "T[a,b]"},
                {"type": "tool_result", "tool_use_id": "b", "content": "T[a,b]"},
            ],
        }
    ]


# ------------------------------------------------------------------------------------------------------ atoms


def test_an_empty_list(package: ModuleType) -> None:
    assert package.atoms([]) == []
    assert package.turn_starts([]) == []
    assert package.step_starts([]) == []
    assert package.safe_cuts([]) == [0]
    assert package.find_safe_cut([], 3) == 0


def test_turns_and_steps(package: ModuleType) -> None:
    """A turn begins with a user message; a step is one response of the model with the results of calls."""
    messages = talk("S U A[a] T[a] A U2 A2")
    #                0 1 2    3    4 5  6
    assert package.atoms(messages) == [(0, 1), (1, 2), (2, 4), (4, 5), (5, 6), (6, 7)]
    assert package.turn_starts(messages) == [1, 5]
    assert package.step_starts(messages) == [2, 4, 6]
    assert package.safe_cuts(messages) == [0, 1, 2, 4, 5, 6, 7]


def test_parallel_calls_are_one_step(package: ModuleType) -> None:
    for results in ("T[a] T[b]", "T[b] T[a]"):  # in any order
        messages = talk(f"U A[a,b] {results} A")
        assert package.atoms(messages) == [(0, 1), (1, 4), (4, 5)]
        assert package.safe_cuts(messages) == [0, 1, 4, 5]


def test_a_run_of_system_messages_is_one_atom(package: ModuleType) -> None:
    messages = [*talk("S"), {"role": "developer", "content": "D"}, *talk("U S A")]
    assert package.atoms(messages) == [(0, 2), (2, 3), (3, 4), (4, 5)]


def test_steps_that_overlap_are_one_atom(package: ModuleType) -> None:
    assert package.atoms(talk("A[a] A[b] T[a] T[b] A")) == [(0, 4), (4, 5)]
    assert package.step_starts(talk("A[a] A[b] T[a] T[b] A")) == [0, 4]
    assert package.atoms(talk("A[a] T[a] A[b] T[b]")) == [(0, 2), (2, 4)]


def test_a_user_message_inside_a_step_starts_no_turn(package: ModuleType) -> None:
    messages = talk("U A[a] U2 T[a] A")
    assert package.atoms(messages) == [(0, 1), (1, 4), (4, 5)]
    assert package.turn_starts(messages) == [0]


def test_tool_results_of_anthropic_are_no_user_message(package: ModuleType) -> None:
    messages = talk("U A[a,b] T[a,b] A U2", form="anthropic")
    assert package.atoms(messages) == [(0, 1), (1, 3), (3, 4), (4, 5)]
    assert package.turn_starts(messages) == [0, 4]
    split = talk("U A[a,b] T[a] T[b] A U2", form="anthropic")  # one message for each result
    assert package.atoms(split) == [(0, 1), (1, 4), (4, 5), (5, 6)]


def test_results_with_text_belong_to_the_step(package: ModuleType) -> None:
    messages = talk("U A[a] U[a] A", form="anthropic")
    assert package.atoms(messages) == [(0, 1), (1, 3), (3, 4)]
    assert package.turn_starts(messages) == [0]


def test_calls_that_the_provider_answers_wait_for_nothing(package: ModuleType) -> None:
    search = {"type": "server_tool_use", "id": "s", "name": "web_search", "input": {}}
    found = {"type": "web_search_tool_result", "tool_use_id": "s", "content": []}
    messages: list[Any] = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": [search]},
        {"role": "assistant", "content": [found]},
    ]
    assert package.safe_cuts(messages) == [0, 1, 2, 3]


def test_both_forms_in_one_list(package: ModuleType) -> None:
    messages = talk("U A[a] T[a]") + talk("A[b] T[b]", form="anthropic") + talk("A U2")
    assert package.atoms(messages) == [(0, 1), (1, 3), (3, 5), (5, 6), (6, 7)]
    across = talk("A[a]") + talk("T[a] A", form="anthropic")
    assert package.atoms(across) == [(0, 2), (2, 3)]


def test_the_older_function_call(package: ModuleType) -> None:
    """It has no id, and neither has its result: missing ids are all the same one."""
    messages = [
        {"role": "user", "content": "U"},
        {"role": "assistant", "content": None, "function_call": {"name": "f", "arguments": "{}"}},
        {"role": "function", "name": "f", "content": "F"},
        {"role": "assistant", "content": "A"},
    ]
    assert package.atoms(messages) == [(0, 1), (1, 3), (3, 4)]


# ---------------------------------------------------------------------------------------------------- pairing


def test_ids_repeat(package: ModuleType) -> None:
    """Pairs are found by position: a result answers the nearest earlier open call with its id."""
    assert package.atoms(talk("A[x] T[x] A[x] T[x]")) == [(0, 2), (2, 4)]
    assert package.atoms(talk("A[x,x] T[x] T[x] A")) == [(0, 3), (3, 4)]
    assert package.atoms(talk("A[x] A[x] T[x] T[x] A")) == [(0, 4), (4, 5)]


@pytest.mark.parametrize("blank", [None, "", "  ", "\t"])
def test_blank_ids_pair_too(package: ModuleType, blank: str | None) -> None:
    call = {"id": blank, "type": "function", "function": {"name": "f", "arguments": "{}"}}
    messages = [
        {"role": "assistant", "content": None, "tool_calls": [call, {**call, "id": None}]},
        {"role": "tool", "tool_call_id": "", "content": "one"},
        {"role": "tool", "content": "two"},
        {"role": "assistant", "content": "A"},
    ]
    assert package.atoms(messages) == [(0, 3), (3, 4)]


def test_results_without_a_call(package: ModuleType) -> None:
    """They go with the step before them; at the start, or after a user message, they stand alone."""
    assert package.atoms(talk("T[x] T[y] U A")) == [(0, 2), (2, 3), (3, 4)]
    assert package.atoms(talk("U A[a] T[a] T[x] A")) == [(0, 1), (1, 4), (4, 5)]
    assert package.atoms(talk("U T[x] A")) == [(0, 1), (1, 2), (2, 3)]
    assert package.safe_cuts(talk("U A[a] T[a] T[x] A")) == [0, 1, 3, 4, 5]  # no pair is parted by a cut at 3


def test_calls_without_a_result(package: ModuleType) -> None:
    messages = talk("U A[a] A2 U2")  # the run was broken off and went on
    assert package.atoms(messages) == [(0, 1), (1, 2), (2, 3), (3, 4)]
    assert package.safe_cuts(messages) == [0, 1, 2, 3, 4]


def test_calls_that_are_still_running(package: ModuleType) -> None:
    """Nothing but results after the last call: the step is open, so the end of the list is no safe cut."""
    for running in ("U A[a]", "U A[a,b] T[b]", "U A[a] A[b] T[b]"):
        messages = talk(running)
        assert package.atoms(messages) == [(0, 1), (1, len(messages))]
        assert package.safe_cuts(messages) == [0, 1]
    assert package.safe_cuts(talk("U A[a,b] T[b] T[a]")) == [0, 1, 4]


# ------------------------------------------------------------------------------------------------------- cuts


def test_find_safe_cut(package: ModuleType) -> None:
    """The largest safe cut up to the target, else the next one, else 0."""
    messages = talk("U A[a] T[a] A[b] T[b] A U2 A2")
    #                0 1    2    3    4    5 6  7
    assert [package.find_safe_cut(messages, target) for target in range(9)] == [0, 1, 1, 3, 3, 5, 6, 7, 8]
    assert package.find_safe_cut(messages, -3) == 0
    assert package.find_safe_cut(messages, 100) == 8
    assert package.find_safe_cut(talk("A[a,b] T[a] T[b] A"), 1) == 3  # nothing from 1 to the target: the next one
    assert package.find_safe_cut(talk("A[a] T[a]"), 1) == 0  # no cut inside at all
    assert package.find_safe_cut(talk("U A[a]"), 5) == 1  # the call is running: not the end


def test_find_safe_cut_by_role(package: ModuleType) -> None:
    """PicoClaw's rule: only user messages, and those even between a call and its result."""
    messages = talk("U A[a] T[a] A U2 A2")
    assert [package.find_safe_cut(messages, target, mode="role") for target in range(7)] == [
        0,
        4,
        4,
        4,
        4,
        4,
        6,
    ]
    assert package.find_safe_cut(talk("U A[a] U2 T[a]"), 3, mode="role") == 2
    assert package.find_safe_cut(talk("U A A2"), 2, mode="role") == 0
    assert package.find_safe_cut(talk("A A2 A3"), 2, mode="role") == 2


@pytest.mark.parametrize(
    "notation",
    [
        "S U A[a,b] T[a] T[b] A U2 A[c] U3 T[c] A2",
        "A[x] A[x] T[x] A T[x] U",
        "T[x] A[x] T[x] T[x] U A[y]",
        "U A[a] T[a] A[b] A[c] T[c] T[b] T[d]",
    ],
)
def test_a_safe_cut_parts_no_pair(package: ModuleType, notation: str) -> None:
    """Checked against the definition: each half is as complete as it was in the whole."""
    messages = talk(notation)
    n = len(messages)
    cuts = package.safe_cuts(messages)
    for cut in range(n):
        assert (cut in cuts) == (not splits_a_pair(messages, cut))
    whole = pairing(messages).faults(range(n))
    for cut in cuts:
        halves = [(messages[:cut], range(cut)), (messages[cut:], range(cut, n))]
        assert set.union(*(pairing(half).faults(indices) for half, indices in halves)) == whole


def test_atoms_fill_the_list(package: ModuleType) -> None:
    messages = talk("S U A[a,b] T[a] T[b] A U2 A[c] U3 T[c] T[x] A2")
    ranges = package.atoms(messages)
    assert [index for start, stop in ranges for index in range(start, stop)] == list(range(len(messages)))
    starts = [start for start, _ in ranges]
    assert set(starts) <= set(package.safe_cuts(messages))
    assert set(package.turn_starts(messages)) | set(package.step_starts(messages)) <= set(starts)


def test_what_is_no_list_of_messages(package: ModuleType) -> None:
    for function in (package.atoms, package.turn_starts, package.step_starts, package.safe_cuts):
        for wrong in ("U", 5, None, {"role": "user", "content": "U"}, iter(talk("U"))):
            with pytest.raises(MessageTypeError) as caught:
                function(wrong)
            assert caught.value.path == "messages"
        with pytest.raises(MessageValueError) as no_role:
            function([*talk("U A"), {"content": "?"}])
        assert no_role.value.path == "messages[2]"
        assert function(tuple(talk("U A"))) == function(talk("U A"))
    with pytest.raises(ValueError, match="mode"):
        package.find_safe_cut(talk("U A"), 1, mode="turns")
    for target in (True, 1.0, "1", None):
        with pytest.raises(TypeError):
            package.find_safe_cut(talk("U A"), target)
