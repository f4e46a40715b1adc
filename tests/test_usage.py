"""Usage records of all providers: the same terms for all, nothing twice, nothing lost, and clear errors."""

from __future__ import annotations

import pickle
import re
from types import SimpleNamespace
from typing import Any

import pytest
from cases import load_vectors
from hypothesis import given
from hypothesis import strategies as st

import ctxfast
from ctxfast import Usage, UsageError

SHAPES: list[dict[str, Any]] = load_vectors("usage_shapes.json")["usage"]

read = Usage.from_provider


def objects(value: Any) -> Any:
    """The same record as objects with attributes."""
    if isinstance(value, dict):
        return SimpleNamespace(**{key: objects(item) for key, item in value.items()})
    return [objects(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize("as_given", [lambda record: record, objects], ids=["dicts", "objects"])
@pytest.mark.parametrize("entry", SHAPES, ids=[entry["id"] for entry in SHAPES])
def test_every_shape(entry: dict[str, Any], as_given: Any) -> None:
    usage = read(as_given(entry["usage"]))
    found = (usage.prompt_tokens, usage.output_tokens) if usage else (None, None)
    assert found == (entry["prompt_tokens_total"], entry["output_tokens_total"])
    assert (usage is None) == (entry["id"] in ("zeros", "missing"))


def test_a_total_alone_is_what_stands_in_the_window() -> None:
    assert read({"total_tokens": 5000}) == Usage(total_tokens=5000)
    assert read({"totalTokenCount": 5000}) == Usage(total_tokens=5000)


@pytest.mark.parametrize(
    "record", [None, {}, {"usage": None}, {"usage": {}}, {"prompt_tokens": None}, {"output_tokens": 0}]
)
def test_nothing_reported(record: Any) -> None:
    assert read(record) is None


# ---------------------------------------------------------------- one truth, as each provider would report it

truths = st.builds(
    lambda fresh, cached, written, answer, thought: Usage(
        fresh + cached + written,
        answer + thought,
        cached,
        written,
        thought,
        fresh + cached + written + answer + thought,
    ),
    fresh=st.integers(1, 10**6),
    cached=st.integers(0, 10**6),
    written=st.integers(0, 10**5),
    answer=st.integers(1, 10**5),
    thought=st.integers(0, 10**5),
)


def chat(u: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": u.prompt_tokens,
        "completion_tokens": u.output_tokens,
        "total_tokens": u.total_tokens,
        "prompt_tokens_details": {"cached_tokens": u.cache_read_tokens, "cache_write_tokens": u.cache_write_tokens},
        "completion_tokens_details": {"reasoning_tokens": u.reasoning_tokens},
    }


def chat_with_all_beside(u: Any) -> dict[str, Any]:
    """A gateway that copies a provider's counts under OpenAI's names without adding them; the total is right."""
    return chat(u) | {
        "prompt_tokens": u.prompt_tokens - u.cache_read_tokens - u.cache_write_tokens,
        "completion_tokens": u.output_tokens - u.reasoning_tokens,
    }


def responses(u: Any) -> dict[str, Any]:
    return {
        "input_tokens": u.prompt_tokens,
        "input_tokens_details": {"cached_tokens": u.cache_read_tokens, "cache_write_tokens": u.cache_write_tokens},
        "output_tokens": u.output_tokens,
        "output_tokens_details": {"reasoning_tokens": u.reasoning_tokens},
        "total_tokens": u.total_tokens,
    }


def langchain(u: Any) -> dict[str, Any]:
    return {
        "input_tokens": u.prompt_tokens,
        "input_token_details": {"cache_read": u.cache_read_tokens, "cache_creation": u.cache_write_tokens},
        "output_tokens": u.output_tokens,
        "output_token_details": {"reasoning": u.reasoning_tokens},
        "total_tokens": u.total_tokens,
    }


def pydantic_ai(u: Any) -> dict[str, Any]:
    return {
        "input_tokens": u.prompt_tokens,
        "cache_read_tokens": u.cache_read_tokens,
        "cache_write_tokens": u.cache_write_tokens,
        "output_tokens": u.output_tokens,
        "reasoning_tokens": u.reasoning_tokens,
    }


def anthropic(u: Any) -> dict[str, Any]:
    return {
        "input_tokens": u.prompt_tokens - u.cache_read_tokens - u.cache_write_tokens,
        "cache_read_input_tokens": u.cache_read_tokens,
        "cache_creation_input_tokens": u.cache_write_tokens,
        "output_tokens": u.output_tokens,
        "output_tokens_details": {"thinking_tokens": u.reasoning_tokens},
    }


def anthropic_summed_by_a_gateway(u: Any) -> dict[str, Any]:
    return anthropic(u) | {"input_tokens": u.prompt_tokens, "total_tokens": u.total_tokens}


def bedrock(u: Any) -> dict[str, Any]:
    return {
        "inputTokens": u.prompt_tokens - u.cache_read_tokens - u.cache_write_tokens,
        "cacheReadInputTokens": u.cache_read_tokens,
        "cacheWriteInputTokens": u.cache_write_tokens,
        "outputTokens": u.output_tokens,
        "totalTokens": u.total_tokens,
    }


def gemini(u: Any) -> dict[str, Any]:
    return {
        "promptTokenCount": u.prompt_tokens - 1,
        "toolUsePromptTokenCount": 1,
        "cachedContentTokenCount": min(u.cache_read_tokens, u.prompt_tokens - 1),
        "candidatesTokenCount": u.output_tokens - u.reasoning_tokens,
        "thoughtsTokenCount": u.reasoning_tokens,
        "totalTokenCount": u.total_tokens,
    }


def litellm(u: Any) -> dict[str, Any]:
    return {
        "prompt_tokens": u.prompt_tokens,
        "completion_tokens": u.output_tokens,
        "total_tokens": u.total_tokens,
        "cache_read_input_tokens": u.cache_read_tokens,
        "cache_creation_input_tokens": u.cache_write_tokens,
    }


ENCODINGS = {
    chat: (),
    chat_with_all_beside: (),
    responses: (),
    langchain: (),
    pydantic_ai: (),
    anthropic_summed_by_a_gateway: (),
    anthropic: (),
    bedrock: ("reasoning_tokens",),
    gemini: ("cache_write_tokens",),
    litellm: ("reasoning_tokens",),
}


@pytest.mark.parametrize(("encode", "unsaid"), ENCODINGS.items(), ids=[encode.__name__ for encode in ENCODINGS])
@given(truth=truths)
def test_all_providers_say_the_same(encode: Any, unsaid: tuple[str, ...], truth: Usage) -> None:
    if encode is chat_with_all_beside and truth.reasoning_tokens == truth.cache_read_tokens + truth.cache_write_tokens:
        return  # two readings add up to the same total
    usage = read(encode(truth))
    fields = (
        "prompt_tokens",
        "output_tokens",
        "cache_read_tokens",
        "cache_write_tokens",
        "reasoning_tokens",
        "total_tokens",
    )
    expected = {field: getattr(truth, field) for field in fields} | dict.fromkeys(unsaid, 0)
    assert {field: getattr(usage, field) for field in fields} == expected
    assert read(objects(encode(truth))) == usage


def test_what_lies_inside_cannot_be_larger() -> None:
    """Without a total: a prompt of 40 tokens of which 38,000 come from the cache is one of 38,040."""
    usage = read({"prompt_tokens": 40, "completion_tokens": 3, "prompt_tokens_details": {"cached_tokens": 38_000}})
    assert usage == Usage(38_040, 3, cache_read_tokens=38_000, total_tokens=38_043)
    usage = read({"prompt_tokens": 40, "completion_tokens": 3, "completion_tokens_details": {"reasoning_tokens": 90}})
    assert usage == Usage(40, 93, reasoning_tokens=90, total_tokens=133)


def test_a_total_that_fits_nothing_changes_nothing() -> None:
    usage = read({"prompt_tokens": 40, "completion_tokens": 3, "total_tokens": 1_000})
    assert usage == Usage(40, 3, total_tokens=43)


def test_an_answer_can_be_empty_and_a_prompt_cannot() -> None:
    assert read({"prompt_tokens": 130_900, "completion_tokens": 0}) == Usage(130_900, 0, total_tokens=130_900)
    assert read({"input_tokens": 0, "output_tokens": 9}) == Usage(None, 9)  # an event of a stream
    assert read({"promptTokenCount": 9}) == Usage(9)


def test_the_last_request_after_a_compaction_by_the_provider() -> None:
    iterations = [
        {"type": "compaction", "input_tokens": 180_000, "output_tokens": 3_500},
        {"type": "message", "input_tokens": 23_000, "output_tokens": 1_000, "cache_read_input_tokens": 2_000},
        {"type": "compaction", "input_tokens": 1, "output_tokens": 1},
    ]
    usage = read({"input_tokens": 23_000, "output_tokens": 1_000, "iterations": iterations})
    assert usage == Usage(25_000, 1_000, cache_read_tokens=2_000, total_tokens=26_000)
    assert read({"input_tokens": 23, "output_tokens": 1, "iterations": None}) == Usage(23, 1, total_tokens=24)
    assert read({"input_tokens": 23, "output_tokens": 1, "iterations": []}) == Usage(23, 1, total_tokens=24)


# ------------------------------------------------------------------------------------------- where it is found


@pytest.mark.parametrize(
    "response",
    [
        {"id": "r", "usage": {"prompt_tokens": 7, "completion_tokens": 2}},
        {"usageMetadata": {"promptTokenCount": 7, "candidatesTokenCount": 2}, "candidates": []},
        {"usage": {"inputTokens": 7, "outputTokens": 2}, "output": {}},
        {"model": "m", "prompt_eval_count": 7, "eval_count": 2},
        {
            "usage": {
                "billed_units": {"input_tokens": 1, "output_tokens": 2},
                "tokens": {"input_tokens": 7, "output_tokens": 2},
            }
        },
        {"content": "", "usage_metadata": {"input_tokens": 7, "output_tokens": 2, "total_tokens": 9}},
    ],
    ids=["openai", "gemini", "bedrock", "ollama", "cohere", "langchain"],
)
def test_in_a_response(response: dict[str, Any]) -> None:
    assert read(response) == read(objects(response)) == Usage(7, 2, total_tokens=9)


def test_objects_of_the_openai_package() -> None:
    types = pytest.importorskip("openai.types")
    usage = {
        "prompt_tokens": 70,
        "completion_tokens": 20,
        "total_tokens": 90,
        "prompt_tokens_details": {"cached_tokens": 64},
        "completion_tokens_details": {"reasoning_tokens": 10},
    }
    expected = Usage(70, 20, cache_read_tokens=64, reasoning_tokens=10, total_tokens=90)
    assert read(types.CompletionUsage.model_validate(usage)) == expected
    body = {"id": "c", "choices": [], "created": 0, "model": "m", "object": "chat.completion", "usage": usage}
    assert read(types.chat.ChatCompletion.model_validate(body)) == expected
    assert read(types.chat.ChatCompletion.model_validate(body | {"usage": None})) is None


def test_objects_of_the_anthropic_package() -> None:
    types = pytest.importorskip("anthropic.types")
    usage = {
        "input_tokens": 12,
        "cache_creation_input_tokens": None,
        "cache_read_input_tokens": 150,
        "output_tokens": 6,
    }
    expected = Usage(162, 6, cache_read_tokens=150, total_tokens=168)
    assert read(types.Usage.model_validate(usage)) == expected
    body = {"id": "m", "content": [], "model": "m", "role": "assistant", "type": "message", "usage": usage}
    assert read(types.Message.model_validate(body)) == expected


# ------------------------------------------------------------------------------------------------ what is wrong


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (3, "Expected a usage record or a response (a `dict` or an object), got int - at `usage`"),
        ("x", "Expected a usage record or a response (a `dict` or an object), got str - at `usage`"),
        ([{}], "Expected a usage record or a response (a `dict` or an object), got list - at `usage`"),
        (
            {"usage": "none"},
            "Expected a usage record or a response (a `dict` or an object), got str - at `usage.usage`",
        ),
        ({"prompt_tokens": -1}, "Expected a number of tokens, 0 or more, got -1 - at `usage.prompt_tokens`"),
        ({"prompt_tokens": True}, "Expected a number of tokens, 0 or more, got bool - at `usage.prompt_tokens`"),
        ({"inputTokens": "3"}, "Expected a number of tokens, 0 or more, got str - at `usage.inputTokens`"),
        (
            {"usage": {"eval_count": 1.5}},
            "Expected a number of tokens, 0 or more, got 1.5 - at `usage.usage.eval_count`",
        ),
        ({"eval_count": float("nan")}, "Expected a number of tokens, 0 or more, got nan - at `usage.eval_count`"),
        ({"eval_count": float("inf")}, "Expected a number of tokens, 0 or more, got inf - at `usage.eval_count`"),
        (
            {"prompt_tokens": 3, "prompt_tokens_details": {"cached_tokens": []}},
            "Expected a number of tokens, 0 or more, got list - at `usage.prompt_tokens_details.cached_tokens`",
        ),
    ],
)
def test_errors_say_what_and_where(record: Any, message: str) -> None:
    with pytest.raises(UsageError) as caught:
        read(record)
    assert str(caught.value) == message
    assert isinstance(caught.value, ctxfast.CtxfastError)
    assert str(pickle.loads(pickle.dumps(caught.value))) == message


def test_a_record_without_a_known_field_names_what_it_has() -> None:
    with pytest.raises(UsageError, match=r"`prompt_tokens`.*got dict with foo, tokens_used - at `usage`"):
        read({"tokens_used": 3, "foo": 1})
    with pytest.raises(UsageError, match="got object with none"):
        read(object())


def test_records_inside_records_end() -> None:
    endless: dict[str, Any] = {}
    endless["usage"] = endless
    with pytest.raises(UsageError, match=r"at `usage\.usage"):
        read(endless)
    iterations: dict[str, Any] = {"type": "message", "input_tokens": 3}
    iterations["iterations"] = [iterations]
    with pytest.raises(UsageError, match="iterations"):
        read(iterations)


FIELDS = """usage usage_metadata tokens iterations type prompt_tokens completion_tokens total_tokens cached_tokens
    prompt_tokens_details input_tokens output_tokens cache_read_input_tokens cache_creation_input_tokens eval_count
    promptTokenCount candidatesTokenCount thoughtsTokenCount totalTokenCount cacheReadInputTokens"""
known_names = st.sampled_from(re.findall(r"\w+", FIELDS))
counts = st.integers(0, 100) | st.sampled_from([None, -1, True, 2.0, 2.5, "message", "", 10**30])
records = st.recursive(
    counts, lambda inner: st.dictionaries(known_names, inner, max_size=6) | st.lists(inner, max_size=2), max_leaves=12
)


@given(records)
def test_any_record_gives_a_usage_or_a_usage_error(record: Any) -> None:
    try:
        usage = read(record)
    except UsageError:
        return
    if usage is not None:
        prompt, output = usage.prompt_tokens, usage.output_tokens
        assert prompt is None or prompt >= max(1, usage.cache_read_tokens + usage.cache_write_tokens)
        assert output is None or output >= usage.reasoning_tokens
        if prompt is not None and output is not None:
            assert usage.total_tokens == prompt + output
        assert usage.prompt_tokens or usage.output_tokens or usage.total_tokens


def test_frozen_hashable_and_pickled() -> None:
    usage = read({"prompt_tokens": 7, "completion_tokens": 2})
    assert hash(usage) == hash(pickle.loads(pickle.dumps(usage)))
    with pytest.raises(AttributeError):
        usage.prompt_tokens = 3  # type: ignore[misc, union-attr]
