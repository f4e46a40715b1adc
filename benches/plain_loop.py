"""The flat count, and clearing tool results, as one would write them by hand for one's own agent: the other honest
baseline.

`ctxfast.reference` is the specification: it reads every message form, and is not meant to be fast. This loop
reads OpenAI chat dicts only.
"""

from __future__ import annotations

from typing import Any


def count(messages: list[dict[str, Any]]) -> int:
    """Tokens at 2.5 characters each, rounded up for each message."""
    total = 0
    for message in messages:
        chars = 12
        content = message.get("content")
        if isinstance(content, str):
            chars += len(content)
        elif content:
            for part in content:
                if part["type"] == "text":
                    chars += len(part["text"])
                else:
                    total += 256
        reasoning = message.get("reasoning_content")
        if reasoning:
            chars += len(reasoning)
        calls = message.get("tool_calls")
        if calls:
            for call in calls:
                function = call["function"]
                chars += len(call["id"]) + len(call["type"]) + len(function["name"]) + len(function["arguments"])
        call_id = message.get("tool_call_id")
        if call_id:
            chars += len(call_id)
        total += (chars * 2 + 4) // 5
    return total


def clear_results(messages: list[dict[str, Any]], stub: str, *, keep: int, tokens: int = 0) -> list[dict[str, Any]]:
    """A copy with a stub in the place of the oldest results, until so many tokens are saved; 0: all but the newest."""
    places = [place for place, message in enumerate(messages) if message["role"] == "tool"]
    result = list(messages)
    saved = 0
    for place in places[: len(places) - keep]:
        content = messages[place]["content"]
        result[place] = {**messages[place], "content": stub}
        saved += len(content) - len(stub)
        if 0 < tokens <= saved / 4:
            break
    return result


def newlines(texts: list[str]) -> int:
    """Newlines in a list of texts."""
    return sum(text.count("\n") for text in texts)
