"""Pruning old tool outputs: what is protected, what is kept, when it pays, what is said about it.

Small lists with their answers, for the core and for the reference. `test_prune_reference.py` compares the two on
generated sessions and checks what must hold for all of them.
"""

from __future__ import annotations

import dataclasses
import json
import pickle
from types import ModuleType
from typing import Any

import pytest
from cases import by_length, two_and_a_half

import ctxfast
from ctxfast import BudgetError, CachePrices, PrunePolicy
from ctxfast.errors import MessageTypeError

Message = dict[str, Any]

# Everything that is not protected, at once, whatever it saves.
ALL = PrunePolicy(
    protected_steps=1, protected_tokens=0, prune_threshold=0, batch="all", min_saved=0, superseded="off", keep_tools=()
)


def step(
    number: int, size: int = 1_000, name: str = "read", output: str | None = None, **arguments: Any
) -> list[Message]:
    """A call and its result of so many characters."""
    call = {"name": name, "arguments": json.dumps(arguments or {"path": f"{number}.py"})}
    text = "x" * size if output is None else output
    return [
        {
            "role": "assistant",
            "content": "",
            "tool_calls": [{"id": f"c{number}", "type": "function", "function": call}],
        },
        {"role": "tool", "tool_call_id": f"c{number}", "content": text},
    ]


def session(*steps: list[Message]) -> list[Message]:
    """A user's request and what the model did about it."""
    return [{"role": "user", "content": "go"}, *(message for one in steps for message in one)]


def prune(package: ModuleType, messages: list[Message], *arguments: Any, **options: Any) -> Any:
    """Prunes with a counter for which a character is a token; a second time changes nothing."""
    options.setdefault("counter", by_length(package))
    pruned = package.prune_tool_outputs(messages, *arguments, **options)
    again = package.prune_tool_outputs(pruned.messages, *arguments, **options)
    assert again.messages == pruned.messages
    return pruned


def replaced(pruned: Any) -> list[str]:
    """Ids of the calls whose outputs are stubs now."""
    return [item.call_id for item in pruned.report.items]


# ------------------------------------------------------------------------------------------------- what is protected


def test_the_newest_steps_are_protected(package: ModuleType) -> None:
    messages = session(*(step(number) for number in range(5)))
    for steps, old in ((1, "c0 c1 c2 c3"), (3, "c0 c1"), (5, ""), (0, "c0 c1 c2 c3")):
        pruned = prune(package, messages, protected_steps=steps, protected_tokens=0, prices=None)
        assert replaced(pruned) == old.split()
    assert pruned.report.changed


def test_what_the_model_has_not_seen_is_protected(package: ModuleType) -> None:
    """Results after the newest response, however the policy counts."""
    messages = session(step(0), step(1))
    assert replaced(prune(package, messages, policy=ALL)) == ["c0"]
    assert replaced(prune(package, [*messages, {"role": "assistant", "content": "ok"}], policy=ALL)) == ["c0", "c1"]


def test_the_newest_tokens_are_protected(package: ModuleType) -> None:
    """The output that crosses the border is not protected, nor is any older one."""
    messages = session(step(0, 1_000), step(1, 8_000), step(2, 15_000), step(3, 10), step(4, 10))
    pruned = prune(package, messages, protected_tokens=20_000, protected_steps=1, prices=None)
    assert replaced(pruned) == ["c0", "c1"]
    pruned = prune(package, messages, protected_tokens=23_020, protected_steps=1, prices=None)
    assert replaced(pruned) == ["c0"]


def test_a_large_newest_step_uses_the_zone_up(package: ModuleType) -> None:
    messages = session(step(0), step(1), step(2, 30_000))
    pruned = prune(package, messages, protected_tokens=20_000, protected_steps=1, prices=None)
    assert replaced(pruned) == ["c0", "c1"]


def test_the_newest_turns_are_protected(package: ModuleType) -> None:
    messages = [*session(step(0), step(1)), *session(step(2), step(3), step(4), step(5))]
    options = {"protected_steps": 1, "protected_tokens": 0, "prices": None}
    assert replaced(prune(package, messages, 1, **options)) == ["c0", "c1"]
    pruned = prune(package, messages, 2, **options)
    assert replaced(pruned) == []
    assert pruned.report.blocked_by == "protected_turns"
    assert replaced(prune(package, messages, **options)) == ["c0", "c1", "c2", "c3", "c4"]


def test_with_a_budget_a_quarter_is_protected(package: ModuleType) -> None:
    """Ten results of 1,500 tokens: of the default zone nothing would be left to prune."""
    messages = session(*(step(number, 1_500) for number in range(10)))
    pruned = prune(package, messages, budget=12_000, protected_steps=1, prices=None, protected_tokens=20_000)
    assert replaced(pruned) == [f"c{number}" for number in range(8)]
    assert prune(package, messages, prices=None, protected_tokens=20_000).report.blocked_by == "protected_tokens"


def test_one_of_parallel_results_can_be_replaced(package: ModuleType) -> None:
    calls = [{"id": name, "type": "function", "function": {"name": "read", "arguments": "{}"}} for name in "ab"]
    messages: list[Message] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": "", "tool_calls": calls},
        {"role": "tool", "tool_call_id": "a", "content": "x" * 30_000},
        {"role": "tool", "tool_call_id": "b", "content": "x" * 10},
        {"role": "assistant", "content": "ok"},
    ]
    pruned = prune(package, messages, protected_steps=1, protected_tokens=0, prices=None)
    assert replaced(pruned) == ["a"]
    assert ctxfast.validate(pruned.messages) == []


# ----------------------------------------------------------------------------------------------- what stays by a rule


@pytest.mark.parametrize(
    ("name", "arguments"),
    [
        ("Task", {"description": "look around"}),
        ("list_dir", {"path": "src"}),
        ("read", {"path": "docs/ADR-7.md"}),
        ("record_decision", {"text": "we take SQLite"}),
    ],
)
def test_what_is_kept(package: ModuleType, name: str, arguments: dict[str, Any]) -> None:
    messages = session(step(0, 1_000, name, **arguments), step(1), step(2), step(3))
    pruned = prune(package, messages, protected_tokens=0, prices=None)
    assert replaced(pruned) == []
    assert pruned.report.blocked_by == "kept"
    assert replaced(prune(package, messages, policy=dataclasses.replace(ALL, keep_paths=()))) == ["c0", "c1", "c2"]


def test_what_is_kept_is_not_in_a_zone_of_nothing(package: ModuleType) -> None:
    """With `batch="all"` it takes no room in the zone, which is no reason to say that the zone protects it."""
    policy = PrunePolicy(protected_tokens=0, protected_steps=1, prune_threshold=0, batch="all", only_tools=("edit",))
    pruned = prune(package, session(step(0, 1_000), step(1)), policy=policy, prices=None)
    assert replaced(pruned) == []
    assert pruned.report.blocked_by == "kept"


def test_what_saves_too_little_stays(package: ModuleType) -> None:
    messages = session(step(0, 300), step(1, 400), step(2, 300), step(3), step(4))
    pruned = prune(package, messages, protected_tokens=0, prices=None)
    (item,) = pruned.report.items  # the stub has 136 characters
    assert (item.call_id, item.before) == ("c1", 400)
    assert item.before - item.after >= 200


def test_own_tools(package: ModuleType) -> None:
    """The table of kinds is extended by the caller."""
    messages = session(step(0, 1_000, "crew", q="x"), step(1), step(2), step(3))
    assert replaced(prune(package, messages, protected_tokens=0, prices=None)) == ["c0"]
    policy = PrunePolicy(tools=(("crew*", "agent"),))
    assert replaced(prune(package, messages, protected_tokens=0, prices=None, policy=policy)) == []
    policy = PrunePolicy(only_tools=("crew",))
    messages += session(step(4), step(5), step(6), step(7))
    assert replaced(prune(package, messages, protected_tokens=0, prices=None, policy=policy)) == ["c0"]


def test_errors_stay_until_they_are_resolved(package: ModuleType) -> None:
    failed = step(0, output="x" * 900 + "\nError: no such option\nexit code 2", name="bash", command="make test")
    unrelated = step(1, 900, name="bash", command="make docs")
    ends = [step(3), step(4), step(5)]
    options = {"protected_tokens": 0, "prices": None}
    assert replaced(prune(package, session(failed, unrelated, *ends), **options)) == ["c1"]
    resolved = step(2, 900, name="bash", command="make test")
    pruned = prune(package, session(failed, unrelated, resolved, *ends), **options)
    assert [(item.call_id, item.reason) for item in pruned.report.items] == [
        ("c0", "error"),
        ("c1", "aged"),
        ("c2", "aged"),
    ]
    assert ", exit code 2, " in pruned.messages[2]["content"]
    assert pruned.messages[2]["content"].endswith("\nError: no such option")


@pytest.mark.parametrize("flag", [{"is_error": True}, {"status": "error"}])
def test_flagged_errors_stay(package: ModuleType, flag: dict[str, Any]) -> None:
    failed = step(0)
    failed[1].update(flag)
    messages = session(failed, step(1), step(2), step(3), step(4))
    options = {"protected_tokens": 0, "prices": None}
    assert replaced(prune(package, messages, **options)) == ["c1"]
    assert replaced(prune(package, messages, policy=PrunePolicy(keep_errors="none"), **options)) == ["c0", "c1"]


def test_too_many_errors_keep_their_last_line(package: ModuleType) -> None:
    """The newest ten stay whole, as long as they have 4,000 tokens together."""

    def failing(number: int, size: int) -> list[Message]:
        return step(number, output="x" * size + "\nFatal: broken\nexit code 1", name="bash", command=f"run {number}")

    ends = [step(number) for number in (90, 91, 92, 93)]
    options = {"protected_tokens": 0, "prices": None}
    pruned = prune(package, session(*(failing(number, 290) for number in range(12)), *ends), **options)
    assert [(item.call_id, item.reason) for item in pruned.report.items] == [
        ("c0", "error"),
        ("c1", "error"),
        ("c90", "aged"),
    ]
    assert pruned.messages[2]["content"].endswith("\nFatal: broken")
    pruned = prune(package, session(*(failing(number, 1_500) for number in range(4)), *ends), **options)
    assert replaced(pruned) == ["c0", "c1", "c90"]


# --------------------------------------------------------------------------------------- repeats and outdated reads


def batch(*steps: list[Message]) -> list[Message]:
    """A session in which an old output starts a batch, and `steps` are inside the zone but for the last three."""
    return session(step(80, 50_000, "bash", command="old"), *steps, *(step(number, 10) for number in (97, 98, 99)))


def joined(package: ModuleType, *steps: list[Message], **options: Any) -> list[tuple[str, str]]:
    """What joins the batch, and why."""
    pruned = prune(package, batch(*steps), prices=None, **{"protected_tokens": 20_000, **options})
    return [(item.call_id, item.reason) for item in pruned.report.items if item.call_id != "c80"]


def test_a_read_that_is_covered_joins(package: ModuleType) -> None:
    first, other, last = (
        step(0, path="f", offset=1, limit=200),
        step(1, path="f", offset=400, limit=51),
        step(2, path="f"),
    )
    assert joined(package, first, other) == []
    assert joined(package, first, last) == [("c0", "covered")]
    assert joined(package, first, other, last) == [("c0", "covered"), ("c1", "covered")]
    assert joined(package, last, first) == []


def test_a_read_of_an_edited_file_joins_when_the_edits_are_old(package: ModuleType) -> None:
    read, edit = step(0, path="f"), step(1, 10, "edit", path="f")
    assert joined(package, read, edit) == [("c0", "edited")]
    newest = [step(number, 10, "edit", path="f") for number in (2, 3, 4)]
    working = session(step(80, 50_000, "bash", command="old"), read, edit, *newest)
    pruned = prune(package, working, prices=None, protected_tokens=20_000)
    assert replaced(pruned) == ["c80"]  # the only text of a file that is being worked on


def test_a_failed_edit_changes_nothing(package: ModuleType) -> None:
    edit = step(1, 10, "edit", path="f")
    edit[1]["is_error"] = True
    assert joined(package, step(0, path="f"), edit) == []


def test_they_join_and_never_start(package: ModuleType) -> None:
    messages = session(step(0, path="f"), step(1, path="f"), *(step(number, 10) for number in (97, 98, 99)))
    options = {"prices": None, "protected_tokens": 20_000}
    pruned = prune(package, messages, **options)
    assert replaced(pruned) == []
    assert pruned.report.blocked_by == "protected_tokens"
    assert replaced(prune(package, messages, policy=PrunePolicy(superseded="start"), **options)) == ["c0"]
    assert joined(package, step(0, path="f"), step(1, path="f"), policy=PrunePolicy(superseded="off")) == []


def test_reads_by_the_shell_and_by_anthropics_editor(package: ModuleType) -> None:
    shell = step(0, name="bash", command="sed -n '1,20p' f")
    editor = step(1, name="str_replace_based_edit_tool", command="view", path="f", view_range=[1, 50])
    change = step(2, 10, "str_replace_based_edit_tool", command="str_replace", path="f", old_str="a")
    patch = {"input": "*** Begin Patch\n*** Update File: f\n@@\n*** End Patch"}
    assert joined(package, shell, editor) == [("c0", "covered")]
    assert joined(package, editor, change) == [("c1", "edited")]
    assert joined(package, editor, step(2, 10, "apply_patch", **patch)) == [("c1", "edited")]


# ----------------------------------------------------------------------------------------------------- when it pays


def paying(steps: int, freed: int, text: int) -> list[Message]:
    """So many steps, of which the first has an old output; text follows that was in the last request."""
    body = [*step(0, freed)[1:], {"role": "user", "content": "x" * text}]
    small = [message for number in range(1, steps) for message in ({"role": "assistant", "content": ""},)]
    separate = [message for one in small for message in (one, {"role": "user", "content": ""})]
    return [{"role": "user", "content": "go"}, step(0)[0], *body, *separate]


def test_what_is_written_again(package: ModuleType) -> None:
    """30,000 freed, 10,000 remain behind them: pays with 12 requests to come, not with 3.

    The rest is what remains of the last request: with the freed tokens in it nothing would ever pay.
    """
    options = {"protected_tokens": 0, "protected_steps": 1}
    assert replaced(prune(package, paying(60, 30_000, 10_000), **options)) == ["c0"]
    pruned = prune(package, paying(5, 30_000, 10_000), **options)
    assert replaced(pruned) == []
    assert pruned.report.blocked_by == "prune_threshold"
    for prices in (None, CachePrices(cold=True), CachePrices(horizon=12)):
        assert replaced(prune(package, paying(5, 30_000, 10_000), prices=prices, **options)) == ["c0"]


def test_the_least_that_a_batch_saves(package: ModuleType) -> None:
    options = {"protected_tokens": 0, "protected_steps": 1}
    assert replaced(prune(package, paying(60, 10_000, 10), **options)) == []  # the stub costs something, too
    assert replaced(prune(package, paying(60, 10_200, 10), **options)) == ["c0"]
    assert replaced(prune(package, paying(60, 5_000, 10), **options, budget=40_000)) == ["c0"]


def test_a_batch_that_was_committed_stays(package: ModuleType) -> None:
    """The same full list and a paste would not pay any more: the report of the last call says what was done."""
    messages = paying(20, 12_000, 2_000)
    options = {"protected_tokens": 0, "protected_steps": 1}
    first = prune(package, messages, **options)
    assert replaced(first) == ["c0"]
    longer = [*messages, {"role": "user", "content": "x" * 10_000}, {"role": "assistant", "content": "ok"}]
    assert replaced(prune(package, longer, **options)) == []
    second = package.prune_tool_outputs(longer, previous=first.report, counter=by_length(package), **options)
    assert replaced(second) == ["c0"]
    assert second.messages[: len(messages)] == first.messages
    assert (second.report.earliest_changed_index, second.report.tokens_rewritten) == (None, 0)
    assert [item.new for item in second.report.items] == [False]
    fed_back = prune(package, [*first.messages, *longer[len(messages) :]], **options)
    assert fed_back.messages == second.messages


def test_a_number_is_a_grid(package: ModuleType) -> None:
    """The same outputs at every length, although nothing is remembered; few lengths change the prefix."""
    messages = session(*(step(number) for number in range(101)))
    last: list[Message] = []
    changes = 0
    for length in range(3, len(messages) + 1, 2):
        options = {"protected_tokens": 10_000, "protected_steps": 1, "prune_threshold": 9_000}
        pruned: list[Message] = package.prune_tool_outputs(
            messages[:length], counter=by_length(package), **options
        ).messages
        changes += pruned[: len(last)] != last
        last = pruned
    assert changes == 8  # each saves 864
    assert sum(len(message["content"]) < 1_000 for message in last if message["role"] == "tool") == 84


def test_superseded_late(package: ModuleType) -> None:
    """An edit late in a long session does not pay alone and waits for a batch."""
    messages = session(step(0, 2_000, path="f"), *(step(number, 1_500) for number in range(1, 100)))
    messages += [*step(100, 10, "edit", path="f"), *(one for number in (101, 102, 103) for one in step(number, 10))]
    assert replaced(prune(package, messages, protected_tokens=200_000)) == []


def test_nothing_before_the_trigger(package: ModuleType) -> None:
    policy = dataclasses.replace(ALL, trigger_tokens=3_000)
    messages = session(step(0), step(1), step(2))
    tokens = by_length(package).messages(messages)
    assert replaced(prune(package, messages, policy=policy)) == ["c0", "c1"]
    pruned = prune(package, messages, policy=dataclasses.replace(policy, trigger_tokens=tokens))
    assert (replaced(pruned), pruned.report.blocked_by) == ([], "trigger_tokens")


# ------------------------------------------------------------------------------------------------- what is written


def test_stubs_keep_shape_and_unknown_keys(package: ModuleType) -> None:
    text = "def f():\n    pass\n" * 50
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
    marked = {"type": "text", "text": text, "cache_control": {"type": "ephemeral"}}
    block = {"type": "tool_result", "tool_use_id": "a", "content": [marked, image], "extra": 1}
    messages: list[Message] = [
        {"role": "user", "content": "go"},
        {"role": "assistant", "content": [{"type": "tool_use", "id": "a", "name": "Read", "input": {"path": "f.py"}}]},
        {"role": "user", "content": [block, {"type": "text", "text": "and this"}], "key": "value"},
        {"role": "assistant", "content": "ok"},
    ]
    pruned = prune(package, messages, policy=ALL)
    stub = "[Tool output pruned: Read f.py, 100 lines, 900 characters, 1 attachment]\ndef f():\ndef f():\ndef f():"
    assert pruned.messages[2] == {
        "role": "user",
        "content": [
            {
                "type": "tool_result",
                "tool_use_id": "a",
                "content": [{"type": "text", "text": stub, "cache_control": {"type": "ephemeral"}}],
                "extra": 1,
            },
            {"type": "text", "text": "and this"},
        ],
        "key": "value",
    }
    assert pruned.messages[2]["content"][1] is messages[2]["content"][1]
    assert [new is old for new, old in zip(pruned.messages, messages, strict=True)] == [True, True, False, True]


def test_a_fixed_stub(package: ModuleType) -> None:
    policy = dataclasses.replace(ALL, stub="[gone]")
    pruned = prune(package, session(step(0), step(1)), policy=policy)
    assert pruned.messages[2]["content"] == "[gone]"


class Shelf:
    """A store in memory."""

    def __init__(self) -> None:
        self.saved: dict[str, str] = {}

    def save(self, text: str) -> str:
        return self.saved.setdefault(text, f"out-{len(self.saved)}")


def test_outputs_are_saved_before_they_are_replaced(package: ModuleType) -> None:
    shelf = Shelf()
    blocks = [{"type": "text", "text": "y" * 500}]
    messages = session(step(0), step(1), step(2))
    messages[4]["content"] = blocks
    pruned = package.prune_tool_outputs(messages, policy=ALL, store=shelf, counter=by_length(package))
    assert shelf.saved == {"x" * 1_000: "out-0", json.dumps(blocks, separators=(",", ":")): "out-1"}
    assert [item.stored for item in pruned.report.items] == ["out-0", "out-1"]
    assert pruned.messages[2]["content"].startswith(
        "[Tool output pruned: read 0.py, 1 line, 1,000 characters, saved as out-0]\n"
    )
    fixed = dataclasses.replace(ALL, stub="[gone]")
    pruned = package.prune_tool_outputs(messages, policy=fixed, store=shelf, counter=by_length(package))
    assert pruned.report.items[0].stored == "out-0"
    assert pruned.messages[2]["content"] == "[gone]"


def test_an_id_that_makes_the_stub_too_long(package: ModuleType) -> None:
    """Then the output stays; of a stub that has room for the id lines go."""
    lines = "def f():\n" + "x" * 60
    pruned = package.prune_tool_outputs(
        session(step(0, output=lines), step(1, output="def g():\n" * 100), step(2)), policy=ALL, store=LongIds()
    )
    assert replaced(pruned) == ["c1"]
    assert len(pruned.messages[4]["content"]) <= 400
    with pytest.raises(ValueError, match="store: expected save to give an id"):
        package.prune_tool_outputs(session(step(0), step(1)), policy=ALL, store=LongIds("i" * 201))


class LongIds:
    """A store whose ids are as long as they may be."""

    def __init__(self, store_id: str = "i" * 200) -> None:
        self.id = store_id

    def save(self, text: str) -> str:
        return self.id


def test_a_store_that_fails(package: ModuleType) -> None:
    class Full:
        def save(self, text: str) -> str:
            raise OSError("disk full")

    class Numbers:
        def save(self, text: str) -> Any:
            return 5

    messages = session(step(0), step(1))
    with pytest.raises(OSError, match="disk full"):
        package.prune_tool_outputs(messages, policy=ALL, store=Full())
    with pytest.raises(TypeError, match="store"):
        package.prune_tool_outputs(messages, policy=ALL, store=Numbers())


def test_a_store_without_room(package: ModuleType) -> None:
    """It gives no id: the stub names none, and the report says so."""

    class Full:
        def save(self, text: str) -> str | None:
            return "out" if text[0] == "y" else None

    messages = session(step(0), step(1, output="y" * 1_000), step(2))
    pruned = package.prune_tool_outputs(messages, policy=ALL, store=Full())
    assert [item.stored for item in pruned.report.items] == [None, "out"]
    assert ["saved as" in pruned.messages[index]["content"] for index in (2, 4)] == [False, True]
    without = package.prune_tool_outputs(messages, policy=ALL)
    assert pruned.messages[2] == without.messages[2]


def test_stubs_of_others_are_stubs(package: ModuleType) -> None:
    texts = ["[Old tool result content cleared]", "[Tool output pruned \u2014 use expand for details]", "[gone]"]
    messages = session(*(step(number, output=text) for number, text in enumerate([*texts, texts[0] * 2])), step(4))
    pruned = prune(package, messages, policy=dataclasses.replace(ALL, stub="[gone]"))
    assert replaced(pruned) == ["c3"]  # text that only begins like one


# --------------------------------------------------------------------------------------------- what is said about it


def test_the_report(package: ModuleType) -> None:
    messages = session(*(step(number) for number in range(4)), step(4, 10))
    pruned = prune(package, messages, protected_tokens=0, prices=None)
    report = pruned.report
    counter = by_length(package)
    assert report.before == counter.messages(messages)
    assert report.after == counter.messages(pruned.messages)
    assert report.before - report.after == sum(item.before - item.after for item in report.items)
    assert report.earliest_changed_index == 2
    assert report.tokens_rewritten == counter.messages(pruned.messages[2:9])  # the newest step was in no request yet
    assert (report.blocked_by, report.reread_of_pruned) == (None, ())
    item = report.items[0]
    assert (item.index, item.tool, item.kind, item.reason, item.new) == (2, "read", "read", "aged", True)
    assert item.stub == pruned.messages[2]["content"]


def test_what_was_read_again_is_reported(package: ModuleType) -> None:
    options = {"protected_tokens": 0, "prices": None}
    pruned = prune(package, session(*(step(number) for number in range(5))), **options)
    again = prune(package, [*pruned.messages, *step(5, path="0.py", offset=10)], **options)
    assert again.report.reread_of_pruned == (12,)
    other = prune(package, [*pruned.messages, *step(5, path="4.py")], **options)
    assert other.report.reread_of_pruned == ()


@pytest.mark.parametrize(
    ("messages", "reason"),
    [
        ([], None),
        (session(), None),
        (session(step(0)), "protected_steps"),
        (session(*(step(number) for number in range(5))), "protected_tokens"),
        (session(step(0, 5_000), step(1, 9_900), step(2, 10), step(3, 200)), "prune_threshold"),
    ],
)
def test_what_was_in_the_way(package: ModuleType, messages: list[Message], reason: str | None) -> None:
    pruned = prune(package, messages)
    assert (pruned.report.changed, pruned.report.blocked_by) == (False, reason)
    assert pruned.messages == messages
    assert pruned.messages is not messages


def test_reports_are_plain_data() -> None:
    pruned = ctxfast.prune_tool_outputs(
        session(*(step(number, 4_000) for number in range(5))), protected_tokens=0, prices=None
    )
    report = pruned.report
    data = json.loads(json.dumps(report.as_dict()))
    assert type(report).from_dict(data) == report
    assert pickle.loads(pickle.dumps(report)) == report
    again = ctxfast.prune_tool_outputs(
        session(*(step(number, 4_000) for number in range(5))), previous=type(report).from_dict(data)
    )
    assert again.messages == pruned.messages
    with pytest.raises(KeyError):
        type(report).from_dict({})
    with pytest.raises(ValueError, match="reason"):
        type(report).from_dict({**data, "items": [{**data["items"][0], "reason": "mood"}]})


def test_the_table() -> None:
    pruned = ctxfast.prune_tool_outputs(
        session(*(step(number) for number in range(5))),
        protected_tokens=0,
        prices=None,
        counter=two_and_a_half(ctxfast),
    )
    lines = str(pruned.report).split("\n")
    assert lines[0].startswith(
        f"{pruned.report.saved} of {pruned.report.before} tokens saved, changed from messages[2]"
    )
    assert lines[1].split() == ["message", "tool", "reason", "before", "after", "call"]
    assert lines[2].split() == ["2", "read", "aged", "400", "55", "c0"]
    nothing = ctxfast.prune_tool_outputs(session(step(0, 4_000)))
    assert str(nothing.report).endswith("nothing new: protected_steps")
    assert repr(nothing.report).startswith("Report(before=")
    assert repr(nothing).startswith("Pruned(messages=<3 messages>, report=Report(")


# ---------------------------------------------------------------------------------------------------------- arguments


@pytest.mark.parametrize(
    ("options", "error"),
    [
        ({"protected_turns": -1}, ValueError),
        ({"protected_turns": True}, TypeError),
        ({"protected_steps": 1.5}, TypeError),
        ({"prune_threshold": "soon"}, ValueError),
        ({"prune_threshold": -5}, ValueError),
        ({"budget": 0}, BudgetError),
        ({"budget": float("nan")}, BudgetError),
    ],
)
def test_wrong_arguments(package: ModuleType, options: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(options))):
        package.prune_tool_outputs([], **options)


def test_wrong_objects() -> None:
    wrong: dict[str, Any] = {"policy": {}, "prices": 1, "previous": "report"}
    for name, value in wrong.items():
        with pytest.raises(TypeError, match=name):
            ctxfast.prune_tool_outputs([], **{name: value})
    with pytest.raises(MessageTypeError, match=r"messages\[0\]\.content"):
        ctxfast.prune_tool_outputs([{"role": "tool", "content": 5}])


def test_what_is_given_goes_before_the_policy(package: ModuleType) -> None:
    messages = session(*(step(number) for number in range(4)))
    assert replaced(prune(package, messages, policy=ALL)) == ["c0", "c1", "c2"]
    assert replaced(prune(package, messages, policy=ALL, protected_steps=3)) == ["c0"]
    assert replaced(prune(package, messages, 0, 2_500, policy=ALL)) == ["c0", "c1", "c2"]
    assert replaced(prune(package, messages, 0, 3_500, policy=ALL)) == []


def test_prices() -> None:
    prices = CachePrices(read=0.5, write=1, horizon=7, cold=True)
    assert repr(prices) == "CachePrices(read=0.5, write=1.0, horizon=7.0, cold=True)"
    assert eval(repr(prices)) == prices == pickle.loads(pickle.dumps(prices))
    assert hash(prices) == hash(CachePrices(0.5, 1.0, 7, True))
    assert CachePrices() == CachePrices(read=0.1, write=1.25, horizon=None, cold=False)
    for wrong in (-1, float("nan"), float("inf")):
        with pytest.raises(ValueError, match="read: expected"):
            CachePrices(read=wrong)
    with pytest.raises(TypeError, match="read: expected"):
        CachePrices(read="free")  # type: ignore[arg-type]


# ------------------------------------------------------------------------------------------- what others do meanwhile


def test_a_store_that_changes_the_list() -> None:
    """What was read is what is written: no stub gets into another message."""
    messages = session(step(0), step(1), step(2))
    before = list(messages)

    class Meddling(Shelf):
        def save(self, text: str) -> str:
            messages.insert(0, {"role": "user", "content": "wait"})
            return super().save(text)

    pruned = ctxfast.prune_tool_outputs(messages, policy=ALL, store=Meddling())
    assert len(pruned.messages) == len(before)
    assert replaced(pruned) == ["c0", "c1"]
    assert all(new is old for new, old in zip(pruned.messages, before, strict=True) if new["role"] != "tool")


def test_a_read_that_says_that_nothing_has_changed_covers_nothing(package: ModuleType) -> None:
    unchanged = step(1, output="File unchanged since last read. See above.", path="f")
    assert joined(package, step(0, path="f"), unchanged) == []
    assert joined(package, step(0, path="f"), step(1, output="cat: f: No such file", path="f")) == []


def test_a_read_that_was_cut_by_the_tool_covers_what_it_has(package: ModuleType) -> None:
    cut = step(1, output="line\n" * 2_000, path="f")
    tail: dict[str, Any] = {"offset": 1_900, "limit": 50, "path": "f"}
    assert joined(package, step(0, output="line\n" * 50, **tail), cut, policy=PrunePolicy(min_saved=1)) == [
        ("c0", "covered")
    ]
    beyond: dict[str, Any] = {"offset": 2_500, "limit": 50, "path": "f"}
    assert joined(package, step(0, output="line\n" * 50, **beyond), cut, policy=PrunePolicy(min_saved=1)) == []


def test_an_edit_of_the_past_does_not_reach_what_is_new(package: ModuleType) -> None:
    """Ids repeat, and the file is read again with the same text after the head of the list was dropped."""
    report = package.prune_tool_outputs(session(step(0), step(1)), policy=ALL, counter=by_length(package)).report
    for later in (session(step(0)), session(step(1), step(0)), session(step(1), step(2), step(0))):
        again = package.prune_tool_outputs(later, policy=ALL, previous=report, counter=by_length(package))
        assert again.messages[-1] is later[-1]
