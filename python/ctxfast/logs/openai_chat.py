"""Lists of chat messages in JSON or JSON Lines, as OpenAI's chat API takes them and as many programs save them.

Read are: a list of messages; an object with such a list under a usual key, alone or inside the `body` or `request` of
a log of requests; several of these in a list or one in each line; and one message in each line. Messages are passed
on as they are, whatever form their content has: Anthropic's request bodies are read in the same way, and foreign keys
stay.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any

from ctxfast.logs.log import Log, LogError, Source, several, shape

__all__ = ["read", "recognises"]

ROLES = frozenset(("system", "developer", "user", "assistant", "tool", "function"))
KEYS = ("messages", "conversation", "traj", "history")  # under which a conversation is kept
WRAPPERS = ("body", "request")  # under which a request body is kept
SYSTEM_KEYS = ("system", "system_prompt")


def recognises(source: Source) -> bool:
    """Whether there is a message or a conversation in it."""
    return source.value == [] or any(is_message(item) or conversation(item) is not None for item in items(source))


def read(source: Source, index: int | None) -> Log:
    """The conversation; `index` says which one, from 0, if there are several."""
    entries = items(source)
    skipped: Counter[str] = Counter()
    request: dict[str, Any] = {}
    conversations = [entry for entry in entries if conversation(entry) is not None]
    first = next((entry for entry in entries if is_message(entry) or conversation(entry) is not None), None)
    if first is None or is_message(first):
        several(source.name, 1, index, "in the file")
        listed: Sequence[Any] = entries
    else:
        unit = "in each entry of the list" if isinstance(source.value, list) else "in each record"
        chosen = conversations[several(source.name, len(conversations), index, unit)]
        skipped.update(kind(entry) for entry in entries if conversation(entry) is None)
        request = body(chosen) if isinstance(chosen, dict) else {}
        listed = conversation(chosen) or []
    messages = [with_call_id(entry) for entry in listed if is_message(entry)]
    skipped.update(kind(entry) for entry in listed if not is_message(entry))
    if listed and not messages:
        raise LogError(f"messages with a `role` ({', '.join(sorted(ROLES))})", shape(listed[0]), source.name)
    tools = request.get("tools")
    return Log(
        form="openai",
        messages=messages,
        history=messages,
        system=next((request[key] for key in SYSTEM_KEYS if isinstance(request.get(key), (str, list))), None),
        tools=tools if isinstance(tools, list) else None,
        damaged=tuple(source.lines.damaged),
        glued=tuple(source.lines.glued),
        skipped=dict(skipped.most_common()),
    )


def items(source: Source) -> Sequence[Any]:
    """What the file is a list of: messages or conversations."""
    return source.value if isinstance(source.value, list) else source.lines.records


def is_message(value: Any) -> bool:
    """Whether it is an object with the role of a chat message."""
    return isinstance(value, dict) and isinstance(value.get("role"), str) and value["role"] in ROLES


def with_call_id(message: dict[str, Any]) -> dict[str, Any]:
    """The message; SWE-agent keeps the id that a result answers as a list of one."""
    ids = message.get("tool_call_ids")
    if message["role"] == "tool" and message.get("tool_call_id") is None and isinstance(ids, list) and len(ids) == 1:
        return {**message, "tool_call_id": ids[0]}
    return message


def conversation(value: Any) -> list[Any] | None:
    """The list of messages that an object (or a list itself) holds."""
    if isinstance(value, dict):
        inner = body(value)
        value = next((inner[key] for key in KEYS if isinstance(inner.get(key), list)), None)
    is_one = isinstance(value, list) and (not value or any(map(is_message, value)))
    return value if is_one else None


def body(value: dict[str, Any]) -> dict[str, Any]:
    """The request body inside an entry of a log of requests, or the entry itself."""
    inner = (value.get(key) for key in WRAPPERS)
    return next((part for part in inner if isinstance(part, dict) and isinstance(part.get("messages"), list)), value)


def kind(value: Any) -> str:
    """What something is that is no message."""
    if not isinstance(value, dict):
        return shape(value)
    for key in ("role", "type"):
        if isinstance(value.get(key), str):
            return f"{key} {value[key]}"
    return "no role"
