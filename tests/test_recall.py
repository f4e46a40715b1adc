"""Saved outputs come back: into lists of messages, byte for byte, and in parts to a model that asks."""

from __future__ import annotations

import copy
import json
import time
from pathlib import Path
from typing import Any

import pytest
from agent_sessions import sessions
from hypothesis import given
from hypothesis import strategies as st

from ctxfast import (
    OutputError,
    OutputStore,
    PrunePolicy,
    TokenCounter,
    prune_tool_outputs,
    recall_tool,
    restore,
    saved_ids,
    truncate_tool_output,
)
from ctxfast.recall import RecallTool

LENGTH = TokenCounter.from_callable(len, message_overhead=0)
ALL = PrunePolicy(protected_steps=0, protected_tokens=0, prune_threshold=0, min_saved=1, keep_tools=(), keep_paths=())
LOG = "".join(f"line {number}\n" for number in range(1, 1_001))


@pytest.fixture
def store(tmp_path: Path) -> OutputStore:
    return OutputStore(tmp_path / "outputs")


def session(*contents: Any, form: str = "openai") -> list[Any]:
    """A conversation whose tool outputs have these contents."""
    messages: list[Any] = [{"role": "system", "content": "s"}, {"role": "user", "content": "u", "extra": 1}]
    for number, content in enumerate(contents):
        if form == "openai":
            function = {"name": "bash", "arguments": json.dumps({"command": f"run {number}"})}
            call = {"id": f"c{number}", "type": "function", "function": function}
            messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
            messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": content, "own": [1]})
        else:
            call = {"type": "tool_use", "id": f"c{number}", "name": "bash", "input": {"command": f"run {number}"}}
            result = {"type": "tool_result", "tool_use_id": f"c{number}", "content": content, "is_error": False}
            messages.append({"role": "assistant", "content": [call]})
            messages.append({"role": "user", "content": [result, {"type": "text", "text": "go on"}]})
    messages.append({"role": "assistant", "content": "done"})
    return messages


def pruned(messages: list[Any], store: Any) -> list[Any]:
    return prune_tool_outputs(messages, policy=ALL, prices=None, counter=LENGTH, store=store).messages


CONTENTS: list[Any] = [
    LOG,
    "x" * 5_000,
    "ไทย 😀\r\n\x00 \ud800" * 500,
    [{"type": "text", "text": "a\ud83d" * 500}, {"type": "text", "text": "b"}],
    [
        {"type": "text", "text": "y" * 900},
        {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}},
    ],
    '["looks", "like", "JSON"]' * 100,
    json.dumps([{"type": "text", "text": "z" * 900}]),
]


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_pruned_outputs_come_back(store: OutputStore, form: str) -> None:
    messages = session(*CONTENTS, form=form)
    before = copy.deepcopy(messages)
    stubs = pruned(messages, store)
    assert sum(new is not old for new, old in zip(stubs, messages, strict=True)) == len(CONTENTS)
    given_back = restore(stubs, store)
    assert given_back == messages == before
    assert given_back is not stubs
    assert all(new is old for new, old, stub in zip(given_back, messages, stubs, strict=True) if stub is old)
    assert saved_ids(stubs) == {path.stem.removeprefix("ctxfast-") for path in Path(store.directory).iterdir()}
    assert saved_ids(messages) == set()
    assert restore(messages, Path(store.directory)) == messages


@given(st.lists(st.text(max_size=40).map(lambda text: text * 30) | st.text(st.characters(codec=None)), max_size=5))
def test_every_pruned_list_comes_back(tmp_path_factory: pytest.TempPathFactory, contents: list[str]) -> None:
    store = OutputStore(tmp_path_factory.getbasetemp() / "restored")
    for form in ("openai", "anthropic"):
        messages = session(*contents, form=form)
        assert restore(pruned(messages, store), store) == messages


def as_json(value: Any) -> Any:
    """Tuples as lists: what is saved of content blocks is JSON."""
    if isinstance(value, (list, tuple)):
        return [as_json(item) for item in value]
    return {key: as_json(item) for key, item in value.items()} if isinstance(value, dict) else value


@given(sessions)
def test_sessions_of_agents_come_back(tmp_path_factory: pytest.TempPathFactory, messages: list[Any]) -> None:
    store = OutputStore(tmp_path_factory.getbasetemp() / "sessions")
    before = copy.deepcopy(messages)
    stubs = pruned(messages, store)
    assert as_json(restore(stubs, store)) == as_json(before)
    assert messages == before


@pytest.mark.parametrize("form", ["openai", "anthropic"])
@pytest.mark.parametrize("clean", [False, True])
@pytest.mark.parametrize("keep", ["head", "tail", "both"])
def test_truncated_outputs_come_back(store: OutputStore, form: str, clean: bool, keep: Any) -> None:
    contents: list[Any] = [
        LOG,
        LOG.rstrip(),
        "\x1b[1mbold\x1b[0m\r\n" * 1_000,
        "ไทย😀" * 1_000,
        "\ud800" * 5_000,
        *CONTENTS[3:5],
    ]
    previews = [
        truncate_tool_output(one, 50, 800, "bash", keep=keep, clean=clean, store=store).preview for one in contents
    ]
    assert all(new is not old for new, old in zip(previews, contents, strict=True))
    assert restore(session(*previews, form=form), store) == session(*contents, form=form)
    short = session(*previews, form=form)
    kept = restore(short, store, truncated=False)
    assert all(new is old for new, old in zip(kept, short, strict=True))
    assert len(saved_ids(short)) == len(set(map(str, contents)))


def test_what_was_truncated_and_then_pruned(store: OutputStore) -> None:
    previews: list[Any] = [
        truncate_tool_output(LOG, 50, store=store).preview,
        truncate_tool_output([{"type": "text", "text": LOG}], 60, store=store).preview,
    ]
    once = session(*previews)
    stubs = pruned(once, store)
    assert stubs != once
    assert restore(stubs, store) == session(LOG, [{"type": "text", "text": LOG}])
    assert restore(stubs, store, truncated=False) == once
    assert restore(stubs, store, pruned=False) == stubs
    twice = truncate_tool_output(previews[0], 20, store=store).preview
    assert twice != previews[0]
    assert restore(session(twice), store) == session(LOG)


def test_a_preview_that_was_changed_stays(store: OutputStore) -> None:
    preview = truncate_tool_output(LOG, 50, store=store).preview
    for changed in (
        preview + "!",
        preview.replace("line 1\n", "line one\n"),
        preview.replace(" bytes omitted", "0 bytes omitted"),
        "> " + preview,
    ):
        messages = session(changed)
        assert restore(messages, store)[3] is messages[3]
    quoted = session(LOG + preview)  # an output that quotes a preview
    assert restore(quoted, store) == quoted
    assert restore(pruned(quoted, store), store) == quoted


def test_texts_of_others_are_no_outputs(store: OutputStore) -> None:
    preview = truncate_tool_output(LOG, 50, store=store).preview
    stub = pruned(session(LOG), store)[3]["content"]
    for text in (preview, stub):
        messages: list[Any] = [
            {"role": "user", "content": text},
            {"role": "assistant", "content": text},
            {"role": "user", "content": [{"type": "text", "text": text}]},
            {"role": "system", "content": text},
            {"content": text},
            text,
            None,
            {"role": "tool"},
            {"role": "tool", "content": None},
            {"role": "tool", "content": {"text": text}},
            {"role": "user", "content": [{"type": "tool_result"}, None, {"type": "tool_result", "content": 5}]},
        ]
        found = restore(messages, store)
        assert all(new is old for new, old in zip(found, messages, strict=True))


def test_outputs_that_are_gone(store: OutputStore) -> None:
    stubs = pruned(session(LOG, "x" * 900), store)
    gone = max(saved_ids(stubs))
    store.path(gone).unlink()
    given_back = restore(stubs, store)
    assert saved_ids(given_back) == {gone}
    with pytest.raises(OutputError, match=gone):
        restore(stubs, store, strict=True)
    wrong: Any = object()
    with pytest.raises(TypeError, match="store"):
        restore(stubs, wrong)


def test_other_stores() -> None:
    class Shelf(dict[str, str]):
        def save(self, text: str) -> str:
            name = f"out/{len(self)}, of this, saved as it is"
            self[name] = text
            return name

        def load(self, output_id: str) -> str:
            return self[output_id.split(", saved as ")[0] if output_id not in self else output_id]

    class Plain(dict[str, str]):
        def save(self, text: str) -> str:
            self[f"out/{len(self)}"] = text
            return f"out/{len(self) - 1}"

        def load(self, output_id: str) -> str:
            return self[output_id]

    shelf = Plain()
    preview = truncate_tool_output(LOG, 50, store=shelf).preview
    assert restore(session(preview), shelf) == session(LOG)
    assert restore(pruned(session(LOG), shelf), shelf) == session(LOG)
    odd = Shelf()
    assert restore(pruned(session(LOG), odd), odd) is not None  # an id that reads like another: nothing is raised


def test_a_full_store_does_not_stop_pruning(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    full = OutputStore(tmp_path / "file")
    result = prune_tool_outputs(session(LOG), policy=ALL, prices=None, counter=LENGTH, store=full)
    (edit,) = result.report.items
    assert edit.stored is None
    assert "saved as" not in result.messages[3]["content"]
    assert restore(result.messages, full) == result.messages


def test_what_is_referred_to_is_not_swept(store: OutputStore) -> None:
    old = OutputStore(store.directory, max_age_days=0)
    stubs = pruned(session(LOG, "x" * 900), old)
    forgotten = old.save("forgotten")
    time.sleep(0.01)
    assert old.sweep(keep=saved_ids(stubs)) == [f"ctxfast-{forgotten}.txt"]
    assert restore(stubs, old) == session(LOG, "x" * 900)


# -------------------------------------------------------------------------------------------------- the model's tool


@pytest.fixture
def tool(store: OutputStore) -> RecallTool:
    return recall_tool(store)


@pytest.fixture
def log(store: OutputStore) -> str:
    output_id = store.save(LOG, "bash")
    assert output_id is not None
    return output_id


def test_the_schema() -> None:
    store = OutputStore("/nowhere")
    schema, handler = recall_tool(store)
    assert schema["type"] == "function"
    assert schema["function"]["name"] == "recall_output"
    assert schema["function"]["parameters"]["required"] == ["id"]
    assert callable(handler)
    assert recall_tool(store, form="anthropic").schema["input_schema"] == schema["function"]["parameters"]
    assert recall_tool(store, form="responses", name="x").schema["name"] == "x"
    json.dumps(schema)
    wrong: Any = "other"
    with pytest.raises(ValueError, match="form"):
        recall_tool(store, form=wrong)
    with pytest.raises(ValueError, match="max_lines"):
        recall_tool(store, max_lines=0)
    with pytest.raises(TypeError, match="max_bytes"):
        recall_tool(store, max_bytes=1.5)  # type: ignore[arg-type]


def test_ranges_of_lines(tool: RecallTool, log: str) -> None:
    assert (
        tool.handler({"id": log, "start": 10, "end": 12})
        == "[3 lines, of 1,000 in all]\n10: line 10\n11: line 11\n12: line 12"
    )
    assert tool.handler(json.dumps({"id": log, "start": "999"})).endswith("all]\n999: line 999\n1000: line 1000")
    assert tool.handler(id=log, start=1_001) == "[0 lines, of 1,000 in all]"
    assert tool.handler(id=log, start=7, end=3) == "[0 lines, of 1,000 in all]"
    first = tool.handler(id=log)
    assert first.count("\n") == 399
    assert first.endswith("398: line 398\n[more: start=399]")
    read: list[str] = []
    start = 1
    while True:  # as a model would go on
        answer = tool.handler(id=log, start=start).split("\n")
        read += [line.partition(": ")[2] for line in answer[1:] if not line.startswith("[")]
        if not answer[-1].startswith("[more"):
            break
        start = int(answer[-1].removeprefix("[more: start=").removesuffix("]"))
    assert "\n".join(read) + "\n" == LOG


def test_patterns(tool: RecallTool, log: str) -> None:
    assert tool.handler(id=log, pattern="LINE 77") == "[11 lines with the pattern, of 1,000 in all]\n" + "\n".join(
        f"{number}: line {number}" for number in (77, *range(770, 780))
    )
    assert tool.handler(id=log, pattern="line 5.*9|line 12", start=500, end=600).startswith("[19 lines with")
    assert tool.handler(id=log, pattern="nothing") == "[0 lines with the pattern, of 1,000 in all]"
    assert tool.handler(id=log, pattern=r"1\.*0") == "[0 lines with the pattern, of 1,000 in all]"
    assert tool.handler(id=log, pattern="|").startswith("[0 lines")
    start = time.perf_counter()
    tool.handler(id=log, pattern="(a+)+$|" * 50 + ".*" * 200)
    assert time.perf_counter() - start < 1


def test_long_lines_in_characters(tool: RecallTool, store: OutputStore) -> None:
    text = "".join(f"{number:09d}," for number in range(100_000))
    output_id = store.save(text)
    answer = tool.handler(id=output_id)
    assert "[this line is longer: unit=characters shows the rest]" in answer
    assert len(answer) <= 20_000
    read, start = "", 1
    while start:
        answer = tool.handler(id=output_id, unit="characters", start=start)
        assert len(answer.encode()) <= 20_000
        head, piece, *more = answer.split("\n")
        assert head == f"[characters {start:,} to {start + len(piece) - 1:,} of 1,000,000]"
        read += piece
        start = int(more[0].removeprefix("[more: start=").removesuffix("]")) if more else 0
    assert read == text
    assert (
        tool.handler(id=output_id, unit="characters", start=11, end=19)
        == "[characters 11 to 19 of 1,000,000]\n000000001"
    )
    assert tool.handler(id=output_id, unit="characters", start=2_000_000) == "[1,000,000 characters]\n"


@pytest.mark.parametrize(
    ("arguments", "answer"),
    [
        (None, "Error: id: expected"),
        ("", "Error: id: expected"),
        ("{", "Error: the arguments are no JSON"),
        ("[" * 100_000, "Error: the arguments are no JSON"),
        ("[]", "Error: the arguments are no object"),
        (5, "Error: the arguments are no object"),
        ({"id": 5}, "Error: id: expected"),
        ({"id": "../../etc/passwd"}, "Error: no saved output '../../etc/passwd': not an id of this store"),
        ({"id": "bash-0123456789abcdef"}, "Error: no saved output 'bash-0123456789abcdef': No such file"),
        ({"id": "x" * 5_000}, "Error: no saved output"),
        ({"id": "a\x00b"}, "Error: no saved output"),
        ({"id": "OK", "start": 0}, "Error: start: expected a whole number, 1 or more"),
        ({"id": "OK", "end": "last"}, "Error: end: expected"),
        ({"id": "OK", "start": True}, "Error: start: expected"),
        ({"id": "OK", "start": float("nan")}, "Error: start: expected"),
        ({"id": "OK", "pattern": ["a"]}, "Error: pattern: expected a text"),
        ({"id": "OK", "unit": "pages"}, "Error: unit: expected"),
        ({"id": "OK", "other": 5, "start": 1e3, "pattern": None}, "[1 lines, of 1,000 in all]"),
    ],
)
def test_what_a_model_may_say(tool: RecallTool, log: str, arguments: Any, answer: str) -> None:
    if isinstance(arguments, dict) and arguments.get("id") == "OK":
        arguments["id"] = log
    found = tool.handler(arguments)
    assert found.startswith(answer)
    assert len(found) < 300


def test_a_store_that_fails() -> None:
    class Broken:
        def load(self, output_id: str) -> str:
            raise RuntimeError("no")

    assert recall_tool(Broken()).handler(id="x") == "Error: the output could not be read (RuntimeError)"


@given(
    st.text(st.characters(codec=None), max_size=2_000),
    st.integers(1, 50),
    st.sampled_from(["lines", "characters"]),
    st.text(max_size=5),
)
def test_every_answer_is_within_its_limits(text: str, start: int, unit: str, pattern: str) -> None:
    class One:
        def load(self, output_id: str) -> str:
            return text

    handler = recall_tool(One(), max_lines=5, max_bytes=300).handler
    answer = handler(id="x", start=start, unit=unit, pattern=pattern)
    assert not answer.startswith("Error")
    assert len(answer.encode("utf-8", "surrogatepass")) <= 300
    assert answer.count("\n") <= 7
