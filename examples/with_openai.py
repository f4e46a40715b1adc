"""A chat with tools through the `openai` package, kept inside the window.

`python examples/with_openai.py "question"` needs `pip install openai` and a key in the environment; `converse` takes
any client, so that it can be tried offline.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from typing import Any

import openai

from ctxfast import ContextManager, OutputStore, truncate_tool_output


def converse(
    client: openai.OpenAI,
    model: str,
    messages: list[Any],
    tools: Sequence[Any],
    run_tool: Callable[[str, str], str],
    manager: ContextManager | None = None,
) -> str:
    """Asks until the model answers without calling a tool; `messages` grows by all that is said."""
    manager = manager or ContextManager.for_model(model, store=OutputStore.default())
    while True:
        sent: Any = manager.prepare(messages, tools=list(tools))
        try:
            response = client.chat.completions.create(model=model, messages=sent, tools=list(tools))
        except openai.APIStatusError as error:
            if not manager.handle_error(error):
                raise
            continue
        manager.record_usage(response)
        answer = response.choices[0].message
        messages.append(answer)
        if not answer.tool_calls:
            return answer.content or ""
        for call in answer.tool_calls:
            assert call.type == "function"
            output = run_tool(call.function.name, call.function.arguments)
            preview = truncate_tool_output(output, tool_name=call.function.name).preview
            messages.append({"role": "tool", "tool_call_id": call.id, "content": preview})


def main() -> None:
    """One question, with a tool that says what time it is."""
    from datetime import datetime, timezone

    clock: Any = {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
    messages = [{"role": "user", "content": " ".join(sys.argv[1:]) or "What time is it?"}]
    now = datetime.now(timezone.utc).isoformat
    print(converse(openai.OpenAI(), "gpt-5-mini", messages, [clock], lambda name, arguments: now()))


if __name__ == "__main__":
    main()
