"""The examples for the SDKs run, against a fake transport whose provider has a small window."""

from __future__ import annotations

import json
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from test_manager import load_example

from ctxfast import ContextBudget, ContextManager, Level, OutputStore, validate

WINDOW = 6_000  # tokens, of four characters of JSON each
STEPS = 60


class Server:
    """Calls a tool so many times, then answers; refuses what is too large."""

    def __init__(self, form: Any) -> None:
        self.form, self.steps, self.refused = form, 0, 0
        self.requests: list[list[Any]] = []

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        tokens = len(json.dumps(body["messages"])) // 4
        if tokens > WINDOW:
            self.refused += 1
            if self.form == "anthropic":
                text = f"prompt is too long: {tokens} tokens > {WINDOW} maximum"
                error: Any = {"type": "error", "error": {"type": "invalid_request_error", "message": text}}
            else:
                text = f"This model's maximum context length is {WINDOW} tokens, you requested {tokens} tokens."
                error = {"error": {"message": text, "code": "context_length_exceeded"}}
            return httpx2.Response(400, json=error)
        assert validate(body["messages"], self.form) == []
        self.requests.append(body["messages"])
        self.steps += 1
        return httpx2.Response(200, json=self.answer(tokens, done=self.steps > STEPS))

    def answer(self, tokens: int, *, done: bool) -> dict[str, Any]:
        name = f"call_{self.steps}"
        if self.form == "anthropic":
            call = {"type": "tool_use", "id": name, "name": "read_file", "input": {"path": "a.py"}}
            content = [{"type": "text", "text": "Done."}] if done else [call]
            usage = {"input_tokens": tokens, "output_tokens": 9}
            rest = {"model": "m", "stop_reason": "end_turn", "usage": usage}
            return {"id": "m", "type": "message", "role": "assistant", "content": content, **rest}
        function = {"name": "read_file", "arguments": '{"path": "a.py"}'}
        calls = None if done else [{"id": name, "type": "function", "function": function}]
        message = {"role": "assistant", "content": "Done." if done else None, "tool_calls": calls}
        choice = {"index": 0, "finish_reason": "stop", "message": message}
        usage = {"prompt_tokens": tokens, "completion_tokens": 9, "total_tokens": tokens + 9}
        return {"id": "c", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice], "usage": usage}


@pytest.mark.parametrize("form", ["openai", "anthropic"])
def test_a_chat_stays_inside_the_window(form: Any, tmp_path: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    example: Any = load_example(f"with_{form}")
    server = Server(form)
    http = httpx2.Client(transport=httpx2.MockTransport(server))
    client: Any = (
        openai.OpenAI(api_key="x", http_client=http, max_retries=0)
        if form == "openai"
        else anthropic.Anthropic(api_key="x", http_client=http, max_retries=0)
    )
    manager = ContextManager(ContextBudget(16_000, 1_000), store=OutputStore(tmp_path / "outputs"), form=form)
    tool = {"name": "read_file", "input_schema": {"type": "object"}}
    if form == "openai":
        tool = {"type": "function", "function": {"name": "read_file", "parameters": {"type": "object"}}}
    messages: list[Any] = [{"role": "user", "content": "Read a.py again and again."}]
    said = example.converse(client, "m", messages, [tool], lambda name, arguments: "total = 1\n" * 60, manager)
    assert said == "Done."
    assert len(server.requests) == STEPS + 1
    assert 1 <= server.refused <= 2
    assert manager.budget.context_window == WINDOW
    assert len(messages) == 1 + 2 * STEPS + 1  # the caller's own list is whole
    assert manager.last_report is not None
    assert manager.last_report.level < Level.EMERGENCY
