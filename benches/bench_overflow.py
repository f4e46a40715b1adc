"""What `classify_error` costs: a body, its JSON, an exception of a real SDK, a chain, what says nothing, a megabyte."""

from __future__ import annotations

import json
from collections.abc import Iterator

import httpx2
import openai
import pytest
from pytest_benchmark.fixture import BenchmarkFixture

import ctxfast

BODY = {
    "error": {
        "message": "This model's maximum context length is 128000 tokens. However, your messages resulted in 131422 "
        "tokens. Please reduce the length of the messages.",
        "type": "invalid_request_error",
        "param": "messages",
        "code": "context_length_exceeded",
    }
}


def refused() -> openai.APIStatusError:
    """As the package raises it."""
    response = httpx2.Response(400, json=BODY, request=httpx2.Request("POST", "https://example.com"))
    return openai.BadRequestError(f"Error code: 400 - {BODY}", response=response, body=BODY["error"])


def in_a_chain() -> RuntimeError:
    error = RuntimeError("agent step failed")
    error.__cause__ = refused()
    return error


def errors() -> Iterator[tuple[str, object, str]]:
    """Name, error, kind."""
    yield "dict", BODY, "context_overflow"
    yield "JSON", json.dumps(BODY), "context_overflow"
    yield "repr in a text", f"Error code: 400 - {BODY}", "context_overflow"
    yield "exception of openai", refused(), "context_overflow"
    yield "in a chain", in_a_chain(), "context_overflow"
    yield "another exception", ValueError("nothing to do with it"), "unknown"
    yield "1 MB echoed", json.dumps({"detail": [{"input": "x" * 1_000_000, "msg": "Field required"}]}), "unknown"
    yield "1 MB of braces", "{" * 1_000_000, "unknown"


@pytest.mark.parametrize(("error", "kind"), [pytest.param(error, kind, id=name) for name, error, kind in errors()])
def test_classify(benchmark: BenchmarkFixture, error: object, kind: str) -> None:
    benchmark.group = "classify_error"
    assert ctxfast.classify_error(error).kind == kind
    benchmark(ctxfast.classify_error, error)
