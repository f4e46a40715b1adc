"""The messages of a list as texts and facts: who says what, what is called, and what came of it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ctxfast.policy import PrunePolicy
from ctxfast.reference.counting import Counter
from ctxfast.reference.pruning import ANTHROPIC, Output, Pruning, text_of
from ctxfast.reference.reading import MEDIA, Reading, read_content, read_fields, read_message
from ctxfast.reference.stubs import shows_files
from ctxfast.reference.tools import COMMAND, END, OTHER, exit_code

ROLES = {"system": "system", "developer": "system", "user": "user", "assistant": "assistant", "tool": "tool"}


def transcribe(messages: Sequence[Any], policy: PrunePolicy, counter: Counter) -> list[dict[str, Any]]:
    """A dict for each message, with a dict for each tool output."""
    pruning = Pruning(messages, policy, None, ANTHROPIC, counter, None)
    transcribed = []
    for index, message in enumerate(messages):
        reading = read_message(message, f"messages[{index}]")
        fields = read_fields(message, f"messages[{index}]")
        role = "tool" if reading.role == "function" else ROLES.get(reading.role, "other")
        content = fields.get("content")
        own = Reading(role=reading.role)
        blocks = content if isinstance(content, (list, tuple)) else []
        if role != "tool":
            parts = [part for part in blocks if not (role == "user" and type_of(part) == "tool_result")]
            read_content(parts, "prose", own, "content")
        transcribed.append(
            {
                "role": role,
                "own_text": reading.own_text,
                "text": "" if role == "tool" else text_of(content)[0],
                "media": sum(kind == MEDIA for kind, _ in [*own.content, *reading.other]),
                "form": reading.form,
                "thinking": role == "assistant"
                and (fields.get("thinking_blocks") is not None or any(map(is_thinking, blocks))),
                "tokens": pruning.tokens[index],
                "calls": reading.called,
                "outputs": [facts_of(output) for output in pruning.outputs if output.index == index],
            }
        )
    return transcribed


def type_of(part: object) -> object:
    """What a part of content calls itself."""
    return None if isinstance(part, str) else read_fields(part, "content").get("type")


def is_thinking(part: object) -> bool:
    """Whether a part is thinking that must be sent back."""
    signed = not isinstance(part, str) and read_fields(part, "content").get("signature") is not None
    return type_of(part) == "redacted_thinking" or (type_of(part) == "thinking" and signed)


def facts_of(output: Output) -> dict[str, Any]:
    """What an output is about."""
    call = output.call
    code = exit_code(output.text, of_files=shows_files(call)) if call.kind in (COMMAND, OTHER) else None
    return {
        "tool": output.tool,
        "kind": call.kind,
        "path": call.read[0] if call.read else call.path,
        "lines": (call.read[1], None if call.read[2] == END else call.read[2]) if call.read else None,
        "edits": list(call.edits),
        "command": call.command,
        "pattern": call.pattern,
        "other": call.other,
        "details": call.details,
        "target": call.target,
        "failed": output.failed,
        "exit_code": code,
        "kept": output.kept,
        "text": output.text,
        "attachments": output.attachments,
    }
