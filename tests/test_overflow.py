"""What a provider's "no" means: bodies of 38 providers in every wrapping, exceptions of real SDKs, chains, answers.

`vectors/overflow_errors.json` holds the bodies, with their class and numbers; an entry without a number has none to be
read. What looks like an overflow and is none is in the same file.
"""

from __future__ import annotations

import copy
import itertools
import json
import pickle
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from cases import load_vectors
from hypothesis import given
from hypothesis import strategies as st

import ctxfast
from ctxfast import CannotFitError, ContextOverflowError, CtxfastError, ErrorInfo, classify_error

Entry = dict[str, Any]

ENTRIES: list[Entry] = load_vectors("overflow_errors.json")
CLEAR = [entry for entry in ENTRIES if not entry.get("ambiguous")]
AMBIGUOUS = [entry for entry in ENTRIES if entry.get("ambiguous")]

# Classes of the vectors that have another name here; what is none of ours is unknown.
KINDS = {
    "malformed_history": "invalid_history",
    "thinking_signature": "invalid_history",
    "rate_limit_tokens": "rate_limit",
    "image_too_large": "media_limit",
    "image_count": "media_limit",
    "output_truncated": "output_cap",
    "invalid_request": "unknown",
    "model_not_found": "unknown",
    "long_context_tier": "unknown",
    "log_warning": "unknown",
    "tool_use_failed": "unknown",
}
NUMBERS = ("context_window", "requested_tokens", "input_tokens", "output_tokens")


def by_id(entry: Entry) -> str:
    return str(entry["id"])


def entry_of(name: str) -> Entry:
    return next(entry for entry in ENTRIES if entry["id"] == name)


def text_of(entry: Entry, *, ascii_only: bool = False) -> str:
    body = entry["body_or_message"]
    return body if isinstance(body, str) else json.dumps(body, ensure_ascii=ascii_only)


def in_metadata(entry: Entry) -> Entry:
    """As OpenRouter passes on what another provider said."""
    metadata = {"raw": text_of(entry), "provider_name": "Someone"}
    return {"error": {"message": "Provider returned error", "code": entry["status"] or 400, "metadata": metadata}}


WRAPPINGS: dict[str, Callable[[Entry], object]] = {
    "as it is": lambda entry: entry["body_or_message"],
    "JSON": text_of,
    "escaped": lambda entry: text_of(entry, ascii_only=True),
    "doubly encoded": lambda entry: json.dumps(text_of(entry)),
    "three times encoded": lambda entry: json.dumps(json.dumps(text_of(entry))),
    "metadata.raw": in_metadata,
    "metadata.raw as JSON": lambda entry: json.dumps(in_metadata(entry)),
    "gateway prefix": lambda entry: f"litellm.BadRequestError: SomeException - {text_of(entry)}",
    "repr": lambda entry: f"Error code: {entry['status'] or 400} - {entry['body_or_message']!r}",
    "event": lambda entry: f"event: error\ndata: {text_of(entry)}\n\n",
    "capitals": lambda entry: text_of(entry).upper(),
    "small letters": lambda entry: text_of(entry).lower(),
    "bytes": lambda entry: text_of(entry).encode(),
    "exception": lambda entry: RuntimeError(text_of(entry)),
    "in a chain": lambda entry: chain(RuntimeError("agent step failed"), ValueError(text_of(entry))),
}


def chain(*exceptions: BaseException) -> BaseException:
    """Exceptions of which each is caused by the next."""
    for outer, inner in itertools.pairwise(exceptions):
        outer.__cause__ = inner
    return exceptions[0]


def check(info: ErrorInfo, entry: Entry) -> None:
    """Kind, numbers and advice are those of the entry."""
    assert info.kind == KINDS.get(entry["class"], entry["class"]), info
    assert info.shrink_helps is entry["shrink_helps"], info
    assert (info.retry == "shrink") is entry["shrink_helps"], info
    if entry["is_overflow"]:
        assert [getattr(info, name) for name in NUMBERS] == [entry.get(name) for name in NUMBERS]
        assert info.limit == info.context_window
    else:
        assert info.context_window is info.input_tokens is info.output_tokens is None


# -------------------------------------------------------------------------------------------------------- bodies


@pytest.mark.parametrize("wrapping", WRAPPINGS)
@pytest.mark.parametrize("entry", CLEAR, ids=by_id)
def test_bodies_in_every_wrapping(entry: Entry, wrapping: str) -> None:
    before = copy.deepcopy(entry)
    check(classify_error(WRAPPINGS[wrapping](entry), status=entry["status"]), entry)
    assert entry == before


@pytest.mark.parametrize("entry", CLEAR, ids=by_id)
def test_without_a_status_there_are_no_false_alarms(entry: Entry) -> None:
    info = classify_error(entry["body_or_message"])
    assert (info.kind == "context_overflow") is entry["is_overflow"]


@pytest.mark.parametrize("entry", AMBIGUOUS, ids=by_id)
@pytest.mark.parametrize("wrapping", WRAPPINGS)
def test_ambiguous_bodies_are_never_learned_wrong(entry: Entry, wrapping: str) -> None:
    info = classify_error(WRAPPINGS[wrapping](entry), status=entry["status"])
    assert info.context_window == (entry.get("context_window") if info.kind == "context_overflow" else None)


def test_recorded_errors_of_providers_are_no_overflows(shared: Path) -> None:
    lines = (shared / "transcripts" / "provider-errors" / "errors.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(lines) == 86
    for record in map(json.loads, lines):
        for error in (record["error"], json.dumps(record["error"]), f"Error code: 400 - {record['error']}"):
            for status in (None, record["status"]):
                assert classify_error(error, status).kind != "context_overflow", record


@pytest.mark.parametrize(
    ("text", "numbers"),
    [
        ("Input Tokens Exceeded: Number of input tokens exceeds maximum length.", (None, None, None, None)),
        (
            "The prompt is too long: 140000, model maximum context length: 131071",
            (131_071, 140_000, 140_000, None),
        ),
        (
            "This model's maximum context length is 8192 tokens, however you requested 9000 tokens "
            "(8000 in your prompt; 1000 for the completion). Please reduce your prompt; or completion length.",
            (8_192, 9_000, 8_000, 1_000),
        ),
        ("`inputs` must have less than 4,096 tokens. Given: 5,000", (4_096, 5_000, 5_000, None)),
        ("prompt is too long: 208,380 tokens > 200,000 maximum", (200_000, 208_380, 208_380, None)),
        (
            "'max_tokens' or 'max_completion_tokens' is too large: 5000. This model's maximum context length is 4096 "
            "tokens and your request has 1000 input tokens (5000 > 4096 - 1000).",
            (4_096, 6_000, 1_000, 5_000),
        ),
        ("Calculated available context size -350 was not non-negative.", (None, None, None, None)),
        ("Prompt length exceeds maximum input length", (None, None, None, None)),
        ("Your prompt of 9000 tokens is larger than what fits", (None, None, None, None)),
        ("Requested tokens (4500) exceed context window of 4096", (None, None, None, None)),
        ("prompt token count of 61002 exceeds the limit of 0", (None, 61_002, 61_002, None)),
    ],
)
def test_other_wordings(text: str, numbers: tuple[int | None, ...]) -> None:
    info = classify_error(text)
    assert info.kind == "context_overflow"
    assert tuple(getattr(info, name) for name in NUMBERS) == numbers


@pytest.mark.parametrize(
    ("text", "kind", "retry"),
    [
        ("max_tokens (10000) exceeds the maximum output length for this model (8192)", "output_cap", "change"),
        (
            "Model token limit (16) exceeded before any response was generated. Increase the `max_tokens` model "
            "setting, or simplify the prompt to result in a shorter response that will fit within the limit.",
            "output_cap",
            "change",
        ),
        ("Could not finish the message because max_tokens or model output limit was reached.", "output_cap", "change"),
        ("The response was filtered: the prompt triggered our content management policy", "content_filter", "no"),
        ("Too many stop sequences: the maximum is 4", "unknown", "no"),
        ("`max_tokens` must be greater than `thinking.budget_tokens`", "unknown", "no"),
        ("logit_bias has too many tokens (at most 300)", "unknown", "no"),
        ("The token of this request is older than an hour, longer than allowed", "unknown", "no"),
        ("Request timed out.", "server", "wait"),
        ('{"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}', "server", "wait"),
        ("messages: roles must alternate between user and assistant", "invalid_history", "change"),
        ("A maximum of 100 PDF pages may be provided.", "media_limit", "shrink"),
        ("Unrecognized request argument supplied: max_context_length", "unknown", "no"),
        ("", "unknown", "no"),
    ],
)
def test_look_alikes(text: str, kind: str, retry: str) -> None:
    info = classify_error(text)
    assert (info.kind, info.retry) == (kind, retry)


def test_what_was_sent_is_not_what_went_wrong() -> None:
    """Users ask about errors, and requests are echoed."""
    question = "why 'prompt is too long: 208380 tokens > 200000 maximum' and context_length_exceeded?"
    message = {"role": "user", "content": question}
    for body in (
        {"detail": [{"msg": "Field required", "input": {"messages": [message]}}]},
        {"error": {"message": "Bad request", "failed_generation": question, "request": {"messages": [message]}}},
        {"choices": [{"finish_reason": "stop", "message": {"role": "assistant", "content": question}}]},
        {"error": {"message": "Bad request", "body": question, "input": question}},
    ):
        for error in (body, json.dumps(body), repr(body), f"Error code: 400 - {body}"):
            assert classify_error(error, 400).kind == "unknown"
    answer = SimpleNamespace(text=question, output_text=question)  # a model's response, not that of an HTTP library
    assert classify_error(answer).kind == "unknown"
    assert classify_error(raised("UnexpectedAnswer", "no JSON in it", response=answer)).kind == "unknown"


# ---------------------------------------------------------------------------------------------- rate and retry


def test_a_limit_in_a_time_that_one_request_passes() -> None:
    info = classify_error(entry_of("neg-groq-413-tpm")["body_or_message"], 413)
    assert (info.kind, info.limit, info.requested_tokens, info.context_window) == ("rate_limit", 6_000, 14_810, None)
    assert info.retry == "shrink"
    many = classify_error("Rate limit reached on tokens per min (TPM): Limit 10000, Used 9000, Requested 2000.", 429)
    assert (many.kind, many.retry, many.shrink_helps) == ("rate_limit", "wait", False)


@pytest.mark.parametrize(
    ("error", "seconds"),
    [
        ("Rate limit reached. Please try again in 6m0.5s.", 360.5),
        ("Too many requests, retry after 26 seconds", 26.0),
        ({"error": {"code": 429, "message": "Slow down", "details": [{"retryDelay": "22s"}]}}, 22.0),
        ("Too many requests", None),
    ],
)
def test_when_to_come_back(error: object, seconds: float | None) -> None:
    info = classify_error(error)
    assert (info.kind, info.retry, info.retry_after) == ("rate_limit", "wait", seconds)


def test_codes_that_are_numbers_belong_to_a_provider() -> None:
    body = {"error": {"code": "1261", "message": "..."}}
    assert classify_error(body, 400).kind == classify_error(body, 400, "Zhipu").kind == "context_overflow"
    assert classify_error(body, 400, "openai").kind == "unknown"


# ---------------------------------------------------------------------------------- nothing said, answers that came


@pytest.mark.parametrize("body", ["400 status code (no body)", "413 status code (no body)", {}, ""])
def test_nothing_said(body: object) -> None:
    status = 413 if "413" in str(body) else 400
    said_nothing = classify_error(body, status)
    assert said_nothing.kind == ("payload_too_large" if status == 413 else "unknown")
    assert said_nothing.maybe_overflow
    full = classify_error(body, status, context_window=100_000, estimated_tokens=80_000)
    assert (full.kind, full.maybe_overflow, full.context_window) == ("context_overflow", False, None)
    half = classify_error(body, status, context_window=100_000, estimated_tokens=79_999)
    assert (half.kind, half.maybe_overflow) == (said_nothing.kind, False)


@pytest.mark.parametrize("status", [400, 413, 422])
@pytest.mark.parametrize("text", ["", "{}", "null"])
def test_nothing_said_to_a_real_client(text: str, status: int) -> None:
    """The SDKs make a text of the status alone, and so does the HTTP library: that says nothing more."""
    server = httpx2.MockTransport(lambda _: httpx2.Response(status, text=text))
    client = httpx2.Client(transport=server)
    openai_client = openai.OpenAI(api_key="x", http_client=client)
    claude = anthropic.Anthropic(api_key="x", http_client=client)
    hello: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hello"}]
    for call in (
        lambda: openai_client.chat.completions.create(model="m", messages=[{"role": "user", "content": "hello"}]),
        lambda: claude.messages.create(model="m", max_tokens=5, messages=hello),
        lambda: client.get("https://example.com").raise_for_status(),
    ):
        with pytest.raises((openai.APIStatusError, anthropic.APIStatusError, httpx2.HTTPStatusError)) as caught:
            call()
        said_nothing = classify_error(caught.value)
        assert (said_nothing.kind, said_nothing.maybe_overflow) == (
            "payload_too_large" if status == 413 else "unknown",
            True,
        )
        full = classify_error(caught.value, context_window=100_000, estimated_tokens=80_000)
        assert (full.kind, full.retry) == ("context_overflow", "shrink")
        half = classify_error(caught.value, context_window=100_000, estimated_tokens=79_999)
        assert (half.kind, half.maybe_overflow) == (said_nothing.kind, False)


@pytest.mark.parametrize("entry", load_vectors("usage_shapes.json")["silent"], ids=by_id)
def test_answers_that_came(entry: Entry) -> None:
    """What a response with `usage` says, with the window and an estimate of what was sent."""
    usage = {"prompt_tokens": entry["prompt_tokens_total"], "completion_tokens": entry["output_tokens_total"]}
    response = {"choices": [{"finish_reason": entry["finish_reason"], "message": {"content": ""}}], "usage": usage}
    verdicts = {"output_cap": "output_cap", "ok": "unknown", "ignore_usage": "unknown"}
    known = {"context_window": entry["context_window"], "estimated_tokens": entry["estimate_sent"]}
    assert classify_error(response, 200, **known).kind == verdicts.get(entry["verdict"], "context_overflow")


@pytest.mark.parametrize(
    ("response", "kind"),
    [
        ({"stop_reason": "model_context_window_exceeded", "content": []}, "context_overflow"),
        ({"stop_reason": "max_tokens"}, "output_cap"),
        ({"stop_reason": "refusal"}, "content_filter"),
        ({"stopReason": "guardrail_intervened"}, "content_filter"),
        ({"candidates": [{"finishReason": "MAX_TOKENS"}]}, "output_cap"),
        ({"candidates": [{"finishReason": "SAFETY"}]}, "content_filter"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "output_cap"),
        ({"choices": [{"finish_reason": "stop"}]}, "unknown"),
        ('data: {"choices": [{"finish_reason": "length", "delta": {}}]}\n\ndata: [DONE]', "output_cap"),
    ],
)
def test_reasons_to_finish(response: object, kind: str) -> None:
    assert classify_error(response).kind == kind


def test_responses_as_objects_of_the_packages() -> None:
    message = anthropic.types.Message.model_construct(stop_reason="model_context_window_exceeded", content=[])
    assert classify_error(message).kind == "context_overflow"
    choice = openai.types.chat.chat_completion.Choice.model_construct(finish_reason="length")
    usage = openai.types.CompletionUsage(prompt_tokens=130_000, completion_tokens=1_072, total_tokens=131_072)
    completion = openai.types.chat.ChatCompletion.model_construct(choices=[choice], usage=usage)
    assert classify_error(completion).kind == "output_cap"
    assert classify_error(completion, context_window=131_072).kind == "context_overflow"
    failed = openai.types.responses.ResponseError(code="server_error", message="The server had an error")
    assert classify_error(openai.types.responses.Response.model_construct(error=failed)).kind == "server"


# ------------------------------------------------------------------------------------------------ real SDKs


def transport(entry: Entry) -> httpx2.MockTransport:
    """A server that gives the entry's body."""
    text = text_of(entry)
    kind = "application/json" if isinstance(entry["body_or_message"], dict) else "text/html"
    return httpx2.MockTransport(lambda _: httpx2.Response(entry["status"], text=text, headers={"content-type": kind}))


def refused_by_openai(entry: Entry) -> Exception:
    client = openai.OpenAI(api_key="x", max_retries=0, http_client=httpx2.Client(transport=transport(entry)))
    with pytest.raises(openai.APIStatusError) as caught:
        client.chat.completions.create(model="some-model", messages=[{"role": "user", "content": "hello"}])
    return caught.value


def refused_by_anthropic(entry: Entry) -> Exception:
    client = anthropic.Anthropic(api_key="x", max_retries=0, http_client=httpx2.Client(transport=transport(entry)))
    messages: list[anthropic.types.MessageParam] = [{"role": "user", "content": "hello"}]
    with pytest.raises(anthropic.APIStatusError) as caught:
        client.messages.create(model="some-model", max_tokens=5, messages=messages)
    return caught.value


@pytest.mark.parametrize("refused", [refused_by_openai, refused_by_anthropic])
@pytest.mark.parametrize("entry", [entry for entry in CLEAR if (entry["status"] or 0) >= 400], ids=by_id)
def test_exceptions_of_real_clients(entry: Entry, refused: Callable[[Entry], Exception]) -> None:
    """Over a fake transport: the package reads the body and raises what it raises."""
    exception = refused(entry)
    info = classify_error(exception)
    check(info, entry)
    assert info.status == entry["status"]
    check(classify_error(chain(RuntimeError("agent step failed"), exception)), entry)


def test_errors_inside_a_stream() -> None:
    text = str(entry_of("openai-responses-sse")["body_or_message"]) + "\n\n"
    headers = {"content-type": "text/event-stream"}
    server = httpx2.MockTransport(lambda _: httpx2.Response(200, text="event: error\n" + text, headers=headers))
    client = openai.OpenAI(api_key="x", max_retries=0, http_client=httpx2.Client(transport=server))
    with pytest.raises(openai.APIError) as caught:
        for _ in client.responses.create(model="some-model", input="hello", stream=True):
            pass
    assert classify_error(caught.value).kind == "context_overflow"


def test_waiting_time_of_a_header() -> None:
    server = httpx2.MockTransport(lambda _: httpx2.Response(429, json={}, headers={"retry-after": "17"}))
    client = openai.OpenAI(api_key="x", max_retries=0, http_client=httpx2.Client(transport=server))
    with pytest.raises(openai.RateLimitError) as caught:
        client.models.list()
    info = classify_error(caught.value)
    assert (info.kind, info.retry, info.retry_after) == ("rate_limit", "wait", 17.0)


def test_no_connection() -> None:
    def refuse(request: httpx2.Request) -> httpx2.Response:
        raise httpx2.ConnectError("refused", request=request)

    client = openai.OpenAI(
        api_key="x", max_retries=0, http_client=httpx2.Client(transport=httpx2.MockTransport(refuse))
    )
    with pytest.raises(openai.APIConnectionError) as caught:
        client.models.list()
    assert (classify_error(caught.value).kind, classify_error(caught.value).retry) == ("server", "wait")


def test_responses_of_an_http_library() -> None:
    response = httpx2.Response(400, json=entry_of("anthropic-prompt-too-long")["body_or_message"])
    check(classify_error(response), entry_of("anthropic-prompt-too-long"))
    request = httpx2.Request("POST", "https://example.com")
    error = httpx2.HTTPStatusError("Client error '400 Bad Request'", request=request, response=response)
    check(classify_error(error), entry_of("anthropic-prompt-too-long"))


# ----------------------------------------------------------- exceptions of other packages, by their names and shapes


def raised(name: str, message: str = "", bases: tuple[str, ...] = (), **attributes: object) -> Exception:
    """An exception of a class with this name, and bases with those."""
    base: type[Exception] = Exception
    for one in reversed(bases):
        base = type(one, (base,), {})
    exception: Exception = type(name, (base,), {})(message)
    for attribute, value in attributes.items():
        setattr(exception, attribute, value)
    return exception


TOO_LONG = {"error": {"message": "prompt is too long: 208380 tokens > 200000 maximum"}}
BOTO = {
    "Error": {"Code": "ValidationException", "Message": "Input is too long for requested model."},
    "ResponseMetadata": {"HTTPStatusCode": 400, "RetryAttempts": 0},
}


@pytest.mark.parametrize(
    ("exception", "kind", "status"),
    [
        (raised("ClientError", "An error occurred", response=BOTO), "context_overflow", 400),
        (raised("ClientError", response={"Error": {"Code": "ThrottlingException"}}), "rate_limit", None),
        (raised("ContextWindowExceededError", "...", ("BadRequestError",), status_code=400), "context_overflow", 400),
        (raised("ContentPolicyViolationError", "...", ("BadRequestError",), status_code=400), "content_filter", 400),
        (raised("OpenAIContextOverflowError", "...", ("ContextOverflowError",)), "context_overflow", None),
        (raised("ClientError", "400 INVALID_ARGUMENT", code=400, details=TOO_LONG), "context_overflow", 400),
        (raised("ResourceExhausted", "429", ("TooManyRequests",), code=429), "rate_limit", 429),
        (
            raised("ModelHTTPError", "x", status_code=400, model_name="m", body=TOO_LONG),
            "context_overflow",
            400,
        ),
        (raised("RateLimitError", "Slow down"), "rate_limit", None),
        (raised("ServiceUnavailableError", "x", status_code=503), "server", 503),
        (raised("AuthenticationError", "x", status_code=401), "auth", 401),
        (raised("ReadTimeout", "", ("TimeoutException", "TransportError")), "server", None),
        (raised("LengthFinishReasonError", "Could not parse response content"), "output_cap", None),
        (TimeoutError(), "server", None),
        (KeyError("messages"), "unknown", None),
        (KeyboardInterrupt(), "unknown", None),
    ],
    ids=lambda value: type(value).__name__ if isinstance(value, BaseException) else str(value),
)
def test_exceptions_by_name_and_shape(exception: BaseException, kind: str, status: int | None) -> None:
    info = classify_error(exception)
    assert (info.kind, info.status) == (kind, status)


def test_a_class_that_says_it_all_has_numbers_in_its_message() -> None:
    """As LiteLLM's exceptions: a response without a text, no body, everything in the message."""
    empty = httpx2.Response(400, request=httpx2.Request("POST", "https://example.com"))
    text = f"litellm.ContextWindowExceededError: AnthropicError - {json.dumps(TOO_LONG)}"
    exception = raised("ContextWindowExceededError", text, status_code=400, body=None, response=empty)
    assert classify_error(exception).requested_tokens == 208_380
    quota = raised("RateLimitError", "You exceeded your current quota", status_code=429, response=empty)
    assert classify_error(quota).kind == "quota"


def test_chains_and_groups() -> None:
    overflow, nothing = ValueError(json.dumps(TOO_LONG)), ValueError("step failed")
    assert classify_error(chain(RuntimeError("a"), RuntimeError("b"), overflow)).context_window == 200_000
    nothing.__context__ = overflow  # raised while the other was handled
    assert classify_error(nothing).kind == "context_overflow"
    nothing.__suppress_context__ = True  # raise ... from None
    assert classify_error(nothing).kind == "unknown"
    # what came last counts: the retry after an overflow was refused for another reason
    assert classify_error(chain(ValueError("Rate limit reached"), overflow)).kind == "rate_limit"
    # wrappers that know nothing better call it a fault of the server
    assert classify_error(chain(raised("HTTPError", "failed", status_code=500), overflow)).kind == "context_overflow"
    unavailable = raised("HTTPError", "failed", status_code=503)
    unavailable.__context__ = overflow
    assert classify_error(unavailable).kind == "server"
    assert (
        classify_error(raised("ExceptionGroup", "two", exceptions=(ValueError("a"), overflow))).kind
        == "context_overflow"
    )
    assert classify_error(RuntimeError("failed", overflow)).kind == "context_overflow"
    circle = chain(RuntimeError("a"), RuntimeError("b"))
    assert circle.__cause__ is not None
    circle.__cause__.__cause__ = circle
    assert classify_error(circle).kind == "unknown"
    assert classify_error(chain(*[RuntimeError(str(n)) for n in range(10_000)])).kind == "unknown"


# ------------------------------------------------------------------------------------------------------ hostile


class Hostile(Exception):
    """Nothing of it can be read."""

    def __getattribute__(self, name: str) -> object:
        raise RuntimeError(name)

    def __str__(self) -> str:
        raise RecursionError

    __repr__ = __str__


class Impatient(Exception):
    @property
    def body(self) -> object:
        raise KeyboardInterrupt


class Odd(Exception):
    """Every attribute is something else than one expects."""

    status_code = "many"
    status = object()
    code = 10**40
    body = lambda: None  # noqa: E731
    response = object
    headers = 5
    details: tuple[object, ...] = (1, None, {5: 6}, {"message": b"\xff", "code": float("nan")})
    message = 5.5
    exceptions = "abc"
    model = ("a",)


def test_hostile_exceptions() -> None:
    assert classify_error(Hostile()).kind == "unknown"
    assert classify_error(chain(RuntimeError("a"), Hostile(), ValueError(json.dumps(TOO_LONG)))).kind == "unknown"
    assert classify_error(Odd("prompt is too long")).kind == "context_overflow"
    with pytest.raises(KeyboardInterrupt):
        classify_error(Impatient())


@pytest.mark.parametrize(
    "thing", [None, 5, 5.5, True, object(), int, [], (), {}, b"", bytearray(b"x"), "\ud800", {1: 2}]
)
def test_anything_else(thing: object) -> None:
    assert classify_error(thing).kind == "unknown"


def test_records_that_contain_themselves() -> None:
    body: dict[str, Any] = {"message": "prompt is too long"}
    body["error"] = body
    body["errors"] = [body, body, body]
    assert classify_error(body).kind == "context_overflow"


ODD = st.text() | st.sampled_from(["prompt is too long", '{"error": "x"}', "{'a': 1", "[[", "\\", "\ud800", "超长"])
KEYS = st.sampled_from(["error", "message", "code", "status", "metadata", "raw", "choices", "input", "n_ctx", "type"])
TREES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | ODD | st.binary(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS | ODD, inner, max_size=4),
    max_leaves=20,
)


@given(TREES, st.lists(st.sampled_from([repr, str, RuntimeError, lambda thing: {"error": thing}]), max_size=4))
def test_anything_in_any_wrapping(tree: object, wrappings: list[Callable[[object], object]]) -> None:
    for wrap in wrappings:
        tree = wrap(tree)
    info = classify_error(tree)
    assert info == classify_error(tree)
    assert (info.kind == "context_overflow") or info.context_window is None
    assert info.shrink_helps is (info.retry == "shrink")
    assert pickle.loads(pickle.dumps(info)) == info


@given(st.sampled_from([entry for entry in CLEAR if entry["is_overflow"]]), st.data())
def test_wrappings_inside_wrappings(entry: Entry, data: st.DataObject) -> None:
    body = text_of(entry)
    for _ in range(data.draw(st.integers(1, 4))):
        outer = data.draw(st.sampled_from(["json", "error", "raw", "prefix", "event"]))
        if outer == "json":
            body = json.dumps(body)
        elif outer == "error":
            body = json.dumps({"error": {"message": body}})
        elif outer == "raw":
            body = json.dumps({"error": {"message": "Provider returned error", "metadata": {"raw": body}}})
        else:
            body = f"data: {body}\n\n" if outer == "event" else f"GatewayError: {body}"
    info = classify_error(body, entry["status"])
    assert info.kind == "context_overflow"
    assert [getattr(info, name) for name in NUMBERS] == [entry.get(name) for name in NUMBERS]


def large() -> Iterator[object]:
    """A megabyte or more of each."""
    yield "too many tokens in the prompt " * 40_000
    yield json.dumps({"detail": [{"input": "x" * 1_000_000, "msg": "prompt is too long"}]})
    yield {"error": {"message": "{" * 1_000_000}}
    for unit in (
        "{",
        "[",
        "[[",
        '{"a":',
        '{"error":',
        '[{"error":"',
        "{'",
        '\\"',
        "{\\",
        '["{", ',
        "ก{",
        "[{'message': (",
    ):
        yield unit * (1_000_000 // len(unit))
        yield json.dumps({"error": unit * (1_000_000 // len(unit))})
    yield {f"key{number}": {"message": "x"} for number in range(100_000)}
    yield {"errors": [{"message": "x"}] * 1_000_000}
    deep: object = "prompt is too long"
    for _ in range(900):
        deep = {"error": [deep]}
    yield deep


def test_large_bodies_take_bounded_time() -> None:
    for body in large():
        start = time.perf_counter()
        classify_error(body)
        classify_error(RuntimeError(body))
        assert time.perf_counter() - start < 2.0  # some 20 ms where nothing else runs


def test_the_end_of_a_long_sentence_is_read() -> None:
    assert classify_error("x " * 100_000 + "prompt is too long: 9 tokens > 8 maximum").context_window == 8


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        ({"status": "400"}, TypeError),
        ({"status": True}, TypeError),
        ({"context_window": 1.5}, TypeError),
        ({"estimated_tokens": -1}, ValueError),
        ({"provider": 5}, TypeError),
    ],
)
def test_wrong_parameters(arguments: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error):
        classify_error("x", **arguments)


def test_nothing_is_imported() -> None:
    script = (
        "import sys, ctxfast; before = set(sys.modules); "
        "ctxfast.classify_error(ValueError('prompt is too long')); ctxfast.classify_error({'error': 'x'}); "
        "print(*set(sys.modules) - before)"
    )
    done = subprocess.run([sys.executable, "-c", script], check=True, stdout=subprocess.PIPE, text=True)
    assert done.stdout.split() == []


# --------------------------------------------------------------------------------------------- our own exceptions


def test_an_overflow_of_an_exception() -> None:
    exception = refused_by_openai(entry_of("openai-chat-messages"))
    overflow = ContextOverflowError.from_exception(exception, model="some-model", estimated_tokens=5)
    assert overflow is not None
    assert (overflow.model, overflow.context_window, overflow.requested_tokens) == ("some-model", 128_000, 131_422)
    assert overflow.reason.startswith("This model's maximum context length is 128000 tokens.")
    assert str(overflow).startswith("context window exceeded: model=some-model window=128000 requested=131422 reason=")
    assert overflow.__cause__ is exception
    assert ContextOverflowError.from_exception(overflow) is overflow
    again = classify_error(overflow)
    assert (again.kind, again.context_window, again.requested_tokens) == ("context_overflow", 128_000, 131_422)


def test_what_an_exception_does_not_say_is_taken_from_the_caller() -> None:
    exception = raised("ModelHTTPError", status_code=400, model_name="some-model", body="Input is too long")
    overflow = ContextOverflowError.from_exception(exception, model="x", context_window=1_000, estimated_tokens=1_200)
    assert overflow is not None
    assert overflow.args == ("some-model", 1_000, 1_200, "Input is too long")


@pytest.mark.parametrize("entry", [entry for entry in CLEAR if not entry["is_overflow"]], ids=by_id)
def test_no_overflow_of_anything_else(entry: Entry) -> None:
    assert ContextOverflowError.from_exception(RuntimeError(text_of(entry))) is None


@pytest.mark.parametrize(
    "error",
    [
        ContextOverflowError("some-model", 128_000, 131_422, "too long"),
        ContextOverflowError(),
        CannotFitError(8_000, 20_000, 20_050, "messages[0] (user, 20,000 tokens)"),
    ],
)
def test_our_exceptions_can_be_pickled_and_caught(error: CtxfastError) -> None:
    for again in (pickle.loads(pickle.dumps(error)), copy.copy(error), copy.deepcopy(error)):
        assert type(again) is type(error)
        assert (str(again), vars(again), again.args) == (str(error), vars(error), error.args)
    assert isinstance(error, ctxfast.WindowError)


def test_the_numbers_are_in_the_message() -> None:
    assert str(ContextOverflowError()) == "context window exceeded: model=unknown window=unknown requested=unknown"
    assert str(CannotFitError(8_000, 20_000, 20_050, "messages[0] (user, 20,000 tokens)")) == (
        "cannot fit 8,000 tokens: at least 20,050 are needed, 20,000 of them pinned; "
        "the largest is messages[0] (user, 20,000 tokens)"
    )


def test_an_error_info_is_plain_data() -> None:
    info = classify_error(TOO_LONG, 400)
    assert repr(info) == (
        "ErrorInfo(kind='context_overflow', context_window=200000, requested_tokens=208380, input_tokens=208380, "
        "retry='shrink')"
    )
    assert json.loads(json.dumps(info.as_dict())) == info.as_dict()
    assert info == copy.deepcopy(info) != classify_error("x")
    with pytest.raises(AttributeError):
        info.kind = "server"  # type: ignore[misc]
