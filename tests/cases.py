"""What the tests share: a short notation for conversations, independent checks, case files and real sessions.

The checks read messages and pair calls with results on their own: they must not share a mistake with the
package, and call nothing of it.
Where it stops: what a case's call means in terms of the package is said in `test_cases.py`.
"""

from __future__ import annotations

import functools
import importlib.util
import json
import os
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any, Literal

import ctxfast
from ctxfast import EstimatorConfig, TokenCounter, reference

Message = dict[str, Any]

VECTORS = Path(__file__).parent / "vectors"


def shared_directory() -> Path | None:
    """The directory with the optional data, if there is one."""
    beside_the_checkout = Path(__file__).resolve().parents[2] / "shared"
    directory = Path(os.environ.get("CTXFAST_SHARED", beside_the_checkout))
    return directory if directory.is_dir() else None


@functools.cache
def transcript_loaders() -> Any:
    """The module of loaders that lies beside the optional transcripts."""
    directory = shared_directory()
    assert directory is not None
    path = directory / "transcripts" / "tools" / "loaders.py"
    spec = importlib.util.spec_from_file_location("transcript_loaders", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def transcript_files() -> list[str]:
    """Files of the folders that have a loader, as `format/name`."""
    directory = shared_directory()
    if directory is None or not (directory / "transcripts").is_dir():
        return []
    folders = [directory / "transcripts" / name for name in transcript_loaders().FORMATS]
    files = [file for folder in folders if folder.is_dir() for file in sorted(folder.iterdir())]
    return [f"{file.parent.name}/{file.name}" for file in files]


def as_openai(message: dict[str, Any]) -> dict[str, Any]:
    """A message of the loaders' common form in OpenAI's."""
    result: dict[str, Any] = {"role": message["role"], "content": message["text"]}
    if message["images"]:
        image = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}
        text = [{"type": "text", "text": message["text"]}] if message["text"] else []
        result["content"] = [*text, *[image for _ in message["images"]]]
    if message["reasoning"]:
        result["reasoning_content"] = message["reasoning"]
    if message["calls"]:
        result["tool_calls"] = [
            {
                "id": call["id"],
                "type": "function",
                "function": {"name": call["name"], "arguments": call["args"]},
            }
            for call in message["calls"]
        ]
    if message["role"] == "tool":
        result["tool_call_id"] = message["call_id"]
    return result


def transcripts(file: Path) -> Iterator[list[Message]]:
    """All sessions of a file in the loaders' common form, without items to which they give no role."""
    for transcript in transcript_loaders().load(str(file), file.parent.name):
        yield [message for message in transcript["messages"] if message["role"] is not None]


def sessions(file: Path) -> Iterator[list[Message]]:
    """All sessions of a file, without the marks of compactions."""
    for transcript in transcripts(file):
        messages = [as_openai(message) for message in transcript if message["role"] != "boundary"]
        if messages:
            yield messages


def raw_claude_code(file: Path) -> list[Message]:
    """The messages of a Claude Code log as they stand there: Anthropic's form, a response split over lines.

    Those of sub-agents only in a log that has no others.
    """
    records = [record for _, record in transcript_loaders().jsonl(file.read_bytes()) if "message" in record]
    own = [record for record in records if not record.get("isSidechain")]
    return [record["message"] for record in own or records if record["type"] in ("user", "assistant")]


def load_vectors(name: str) -> Any:
    """A file of `tests/vectors`, with `{"$repeat": [unit, n]}` written out."""
    return expand(json.loads((VECTORS / name).read_text(encoding="utf-8")))


def load_cases() -> list[Message]:
    """The case files, with generated strings written out; none without the optional data."""
    directory = shared_directory()
    files = [] if directory is None else sorted((directory / "cases").glob("*.json"))
    return [{**expand(json.loads(file.read_text(encoding="utf-8"))), "file": file.stem} for file in files]


def expand(value: Any) -> Any:
    """The value with generated strings written out: `gen` of the case files, `$repeat` of the vectors."""
    if isinstance(value, list):
        return [expand(item) for item in value]
    if not isinstance(value, dict):
        return value
    if "$repeat" in value:
        unit, count = value["$repeat"]
        return unit * count
    if value.get("gen") == "repeat":
        return value["unit"] * value["count"]
    if value.get("gen") == "concat":
        return "".join(expand(value["parts"]))
    return {key: expand(item) for key, item in value.items()}


# ------------------------------------------------------------------------------------------- a short notation


def talk(notation: str, form: Literal["openai", "anthropic"] = "openai") -> list[Message]:
    """A conversation from its notation: `talk("S U A[a,b] T[a] T[b]=50 A U2")`.

    `S` system, `U` user, `A` assistant, `A[a,b]` an assistant with the calls a and b, `T[a]` the result of
    call a, `U[a]` (Anthropic form only) a user message with the result of call a and text. A number after the
    letter is just a name. The content is the word itself, or as many characters as the number after `=` says.
    Names and arguments of calls are empty: a counter that counts characters gives a message the length of its
    content.
    """
    return [one_message(word, form) for word in notation.split()]


def one_message(word: str, form: str) -> Message:
    """One message of `talk`."""
    match = re.fullmatch(r"([SUAT])\d*(?:\[([\w,]+)\])?(?:=(\d+))?", word)
    assert match, word
    letter, listed, size = match.groups()
    text = word if size is None else "x" * int(size)
    ids = listed.split(",") if listed else []
    role = {"S": "system", "U": "user", "A": "assistant", "T": "tool"}[letter]
    if form == "openai":
        message: Message = {"role": role, "content": text}
        if letter == "T":
            (message["tool_call_id"],) = ids
        elif ids:
            message["tool_calls"] = [
                {"id": call, "type": "function", "function": {"name": "", "arguments": ""}} for call in ids
            ]
        return message
    if not ids:
        return {"role": role, "content": text}
    if letter == "A":
        calls: list[Message] = [{"type": "tool_use", "id": call, "name": "", "input": {}} for call in ids]
        return {"role": role, "content": [{"type": "text", "text": text}, *calls]}
    results: list[Message] = [{"type": "tool_result", "tool_use_id": call, "content": text} for call in ids]
    own_text = [{"type": "text", "text": text}] if letter == "U" else []
    return {"role": "user", "content": results + own_text}


# ----------------------------------------------------------------------------- counters of core and reference


def counters(package: ModuleType) -> Any:
    """The constructors of counters, of the core or of the reference, under `TokenCounter`'s names."""
    if package is ctxfast:
        return TokenCounter
    return SimpleNamespace(
        default=reference.default_counter,
        picoclaw=reference.picoclaw,
        flat=reference.FlatCounter,
        from_callable=reference.CallableCounter,
        estimator=reference.EstimatorCounter,
        for_model=reference.for_model,
    )


def two_and_a_half(package: ModuleType) -> Any:
    """A simple counter: 2.5 characters per token, rounded up."""
    return counters(package).flat(EstimatorConfig(chars_per_token=2.5))


def by_length(package: ModuleType) -> Any:
    """A counter that gives a message the length of its texts."""
    return counters(package).from_callable(len, message_overhead=0)


# ----------------------------------------------------------------------------------------- independent checks


def get(message: Any, key: str) -> Any:
    """A field of a message or block: of a dict by its key, of an object by its attribute."""
    return message.get(key) if isinstance(message, dict) else getattr(message, key, None)


def blocks(message: Any, block_type: str) -> list[Any]:
    """The content blocks of one type."""
    content = get(message, "content")
    return [part for part in content if get(part, "type") == block_type] if isinstance(content, list) else []


def key_of(call_id: Any) -> str:
    """Ids pair when they are equal; all blank and missing ones are equal."""
    return call_id if isinstance(call_id, str) and call_id.strip() else ""


def calls_of(message: Any) -> list[str]:
    """Ids of the calls that a message makes."""
    if get(message, "role") != "assistant":
        return []
    calls = list(get(message, "tool_calls") or [])
    ids = [key_of(get(call, "id")) for call in calls or blocks(message, "tool_use")]
    if get(message, "function_call"):
        ids.append("")
    return ids


def results_of(message: Any) -> list[str]:
    """Ids of the calls that a message answers."""
    role = get(message, "role")
    if role in ("tool", "function"):
        return [key_of(get(message, "tool_call_id"))]
    if role == "user":
        return [key_of(get(block, "tool_use_id")) for block in blocks(message, "tool_result")]
    return []


def has_user_text(message: Any) -> bool:
    """Whether it is a real user message: role user, and not tool results alone."""
    if get(message, "role") != "user":
        return False
    content = get(message, "content")
    results = len(blocks(message, "tool_result"))
    return not isinstance(content, list) or not results or len(content) > results


@dataclass
class Pairing:
    """Which calls and results of a list belong together, by the indices of their messages."""

    pairs: list[tuple[int, int]]
    orphans: list[tuple[int, str]]  # results without a call: index, id
    unanswered: list[tuple[int, str]]  # calls without a result: index, id

    def faults(self, indices: Sequence[int]) -> set[tuple[str, int, str]]:
        """What is incomplete; `indices` says where the messages of this list stand in another one."""
        orphans = {("orphan", indices[index], call) for index, call in self.orphans}
        return orphans | {("unanswered", indices[index], call) for index, call in self.unanswered}


def pairing(messages: Iterable[Any]) -> Pairing:
    """Pair calls with results by position: a result answers the nearest earlier open call with its id.

    Among the calls of one message with that id it answers the first.
    """
    open_calls: list[tuple[int, str]] = []
    result = Pairing([], [], open_calls)
    for index, message in enumerate(messages):
        for call in results_of(message):
            candidates = [at for at, key in open_calls if key == call]
            if candidates:
                result.pairs.append((candidates[-1], index))
                open_calls.remove((candidates[-1], call))
            else:
                result.orphans.append((index, call))
        open_calls += [(index, call) for call in calls_of(message)]
    return result


def splits_a_pair(messages: Sequence[Any], cut: int) -> bool:
    """Whether a call lies before the cut and its result at or after it."""
    return any(call < cut <= result for call, result in pairing(messages).pairs)


def check_tail(messages: Sequence[Any], tail: Any, total: int | None = None) -> None:
    """What must be true of every fresh tail, whatever the budget.

    `total`: the tokens of the kept messages, without the leading system messages, as the counter gives them.
    """
    n = len(messages)
    body = next((i for i in range(n) if get(messages[i], "role") not in ("system", "developer")), n)
    leading = range(min(body, tail.start))
    assert list(tail.pinned) == sorted(set(tail.pinned))
    assert all(has_user_text(messages[index]) and body <= index < tail.start for index in tail.pinned)
    indices = [*leading, *tail.pinned, *range(tail.start, n)]
    assert len(tail.messages) == len(indices)
    for index, kept in zip(indices, tail.messages, strict=True):  # in the order of the input, word for word
        if index in tail.pinned and results_of(messages[index]):
            assert get(kept, "content") == [
                part for part in get(messages[index], "content") if get(part, "type") != "tool_result"
            ]
        else:
            assert kept is messages[index]
    assert pairing(tail.messages).faults(indices) <= pairing(messages).faults(range(n))
    if n:
        assert tail.messages[-1] is messages[-1]
    real = [index for index, message in enumerate(messages) if has_user_text(message)]
    if real:
        assert real[-1] in indices  # the task
    if total is not None:
        assert tail.tokens == total
