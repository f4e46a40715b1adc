"""A chat with tools through the `anthropic` package, kept inside the window.

`python examples/with_anthropic.py "question"` needs `pip install anthropic` and a key in the environment; `converse`
takes any client, so that it can be tried offline.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Sequence
from typing import Any

import anthropic

from ctxfast import ContextManager, OutputStore, truncate_tool_output


def converse(
    client: anthropic.Anthropic,
    model: str,
    messages: list[Any],
    tools: Sequence[Any],
    run_tool: Callable[[str, str], str],
    manager: ContextManager | None = None,
    system: str = "Be brief.",
) -> str:
    """Asks until the model answers without calling a tool; `messages` grows by all that is said."""
    manager = manager or ContextManager.for_model(model, store=OutputStore.default(), form="anthropic")
    while True:
        sent: Any = manager.prepare(messages, system=system, tools=list(tools))
        try:
            response = client.messages.create(
                model=model, max_tokens=4_000, system=system, messages=sent, tools=list(tools)
            )
        except anthropic.APIStatusError as error:
            if not manager.handle_error(error):
                raise
            continue
        manager.record_usage(response)
        messages.append({"role": "assistant", "content": response.content})
        calls = [block for block in response.content if block.type == "tool_use"]
        if not calls:
            return "".join(block.text for block in response.content if block.type == "text")
        results = []
        for call in calls:
            output = run_tool(call.name, json.dumps(call.input))
            preview = truncate_tool_output(output, tool_name=call.name).preview
            results.append({"type": "tool_result", "tool_use_id": call.id, "content": preview})
        messages.append({"role": "user", "content": results})


def main() -> None:
    """One question, with a tool that says what time it is."""
    from datetime import datetime, timezone

    clock: Any = {"name": "now", "input_schema": {"type": "object", "properties": {}}}
    messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What time is it?"}]
    now = datetime.now(timezone.utc).isoformat
    print(converse(anthropic.Anthropic(), "claude-sonnet-4-5", messages, [clock], lambda name, arguments: now()))


if __name__ == "__main__":
    main()
