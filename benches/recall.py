"""How many overflows do classifiers find, and how often are they wrong? A table for `docs/errors.md`.

    python benches/recall.py      LiteLLM's row needs `pip install litellm`, best in an environment of its own

Each classifier sees the bodies of `tests/vectors/overflow_errors.json`, without the ambiguous ones and the answers that
came, in the view that is best for it: an overflow is found if the whole text or its innermost message matches. A
look-alike is judged on the whole text alone.
"""

from __future__ import annotations

import importlib
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import ctxfast

VECTORS = Path(__file__).parent.parent / "tests" / "vectors" / "overflow_errors.json"

Entry = dict[str, Any]


def text_of(entry: Entry) -> str:
    body = entry["body_or_message"]
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=False)


def inner_message(value: object) -> str:
    """The innermost `message` or `error`, as SDKs show it."""
    while isinstance(value, dict):
        value = value.get("error") or value.get("message") or value.get("detail") or ""
    return str(value)


def ours(entry: Entry, view: str) -> bool:
    return ctxfast.classify_error(view, entry["status"]).kind == "context_overflow"


def by_hand(entry: Entry, view: str) -> bool:
    """What one finds in many agents."""
    words = ("context_length_exceeded", "maximum context length", "prompt is too long", "context window")
    return any(word in view.lower() for word in words)


def classifiers() -> dict[str, Callable[[Entry, str], bool]]:
    found: dict[str, Callable[[Entry, str], bool]] = {"ctxfast": ours, "four words by hand": by_hand}
    try:
        module = importlib.import_module("litellm.litellm_core_utils.exception_mapping_utils")
    except ImportError:
        return found
    litellm = module.ExceptionCheckers.is_error_str_context_window_exceeded
    found["LiteLLM, `is_error_str_context_window_exceeded`"] = lambda entry, view: bool(litellm(view))
    return found


def through_litellm(entries: list[Entry]) -> None:
    """How many keep their meaning when LiteLLM has made its own exceptions of them, which ctxfast then reads."""
    try:
        mapping = importlib.import_module("litellm.litellm_core_utils.exception_mapping_utils")
        httpx = importlib.import_module("httpx")
    except ImportError:
        return
    total, same = 0, 0
    for entry in entries:
        if (entry["status"] or 0) < 400:
            continue
        for provider in ("openai", "anthropic", "openrouter"):
            request = httpx.Request("POST", "https://example.com")
            response = httpx.Response(entry["status"], text=text_of(entry), request=request)
            original = httpx.HTTPStatusError(text_of(entry), request=request, response=response)
            original.status_code, original.message = entry["status"], text_of(entry)
            try:
                mapping.exception_type(model="some-model", original_exception=original, custom_llm_provider=provider)
            except Exception as error:
                error.__context__ = None
                info = ctxfast.classify_error(error)
                numbers = (info.context_window, info.requested_tokens)
                expected = (entry.get("context_window"), entry.get("requested_tokens"))
                total += 1
                same += (info.kind == "context_overflow") is entry["is_overflow"] and (
                    not entry["is_overflow"] or numbers == expected
                )
    print(f"\nLiteLLM's own exceptions, read by ctxfast: {same} of {total} as the bodies they were made of")


def main() -> None:
    entries: list[Entry] = json.loads(VECTORS.read_text(encoding="utf-8"))
    entries = [entry for entry in entries if not entry.get("ambiguous") and entry["form"] != "finish_reason"]
    overflows = [entry for entry in entries if entry["is_overflow"]]
    others = [entry for entry in entries if not entry["is_overflow"]]
    print(f"| classifier | of {len(overflows)} overflows found | of {len(others)} look-alikes taken for one |")
    print("| --- | --: | --: |")
    for name, classify in classifiers().items():
        views = [(entry, (text_of(entry), inner_message(entry["body_or_message"]))) for entry in overflows]
        found = sum(any(classify(entry, view) for view in both) for entry, both in views)
        wrong = sum(classify(entry, text_of(entry)) for entry in others)
        print(f"| {name} | {found} ({found / len(overflows):.0%}) | {wrong} |")
    through_litellm(entries)


if __name__ == "__main__":
    main()
