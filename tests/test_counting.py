"""Counting, by examples: what each kind of counter gives for small inputs, with the sums written out.

That the reference and the core agree on every input is tested elsewhere; here all is worked out by hand.
"""

from __future__ import annotations

import asyncio
import math
import pickle
from dataclasses import replace
from typing import Any
from unittest import mock

import pytest

import ctxfast.counting
import ctxfast.models
from ctxfast import (
    BudgetError,
    EstimatorConfig,
    MessageTypeError,
    MessageValueError,
    TokenCounter,
    count_tokens,
    model_info,
)

FLAT = TokenCounter.flat(EstimatorConfig())  # 4.0 characters per token, rounded up

USER = {"role": "user", "content": "Hello, world!"}
CALL = {
    "role": "assistant",
    "content": None,
    "tool_calls": [
        {
            "id": "call_1",
            "type": "function",
            "function": {"name": "get_weather", "arguments": '{"city":"Paris"}'},
        }
    ],
}
RESULT = {"role": "tool", "tool_call_id": "call_1", "content": "22 C"}
TOOL = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Weather of a city",
        "parameters": {"type": "object"},
    },
}
IMAGE = {"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0KGgo="}}

# ------------------------------------------------------------------------------------------- the flat counter


def test_text() -> None:
    assert FLAT.text("") == 0
    assert FLAT.text("Hello, world!") == 4  # 13 characters: 3.25
    assert FLAT("Hello, world!") == 4  # calling the counter is the same


def test_text_counts_characters_whatever_their_storage() -> None:
    for character in ("a", "é", "ก", "漢", "😀", "\ud83d"):  # one, two or four bytes each; a lone surrogate
        assert FLAT.text(character * 40) == 10


def test_message() -> None:
    assert FLAT.message(USER) == 7  # 13 + 12 for the frame = 25: 6.25
    assert FLAT.message(CALL) == 14  # 6 (id) + 8 (type) + 11 (name) + 16 (arguments) + 12 = 53: 13.25
    assert FLAT.message(RESULT) == 6  # 6 (id) + 4 + 12 = 22: 5.5
    assert FLAT.message({"role": "user", "content": None}) == 3  # the frame alone


def test_a_role_is_free() -> None:
    assert FLAT.message({"role": "developer", "content": "Hello, world!"}) == FLAT.message(USER)


def test_reasoning_and_refusals_are_text() -> None:
    plain = {"role": "assistant", "content": "x" * 28}  # 28 + 12 = 40: 10
    assert FLAT.message(plain) == 10
    assert FLAT.message({**plain, "reasoning_content": "y" * 40}) == 20
    assert FLAT.message({**plain, "reasoning": "y" * 40}) == 20  # the name that some servers use
    assert FLAT.message({**plain, "refusal": "y" * 40}) == 20


def test_content_parts() -> None:
    parts = [{"type": "text", "text": "Hello, "}, {"type": "text", "text": "world!"}]
    assert FLAT.content(parts) == FLAT.content("Hello, world!") == 4
    assert FLAT.content(None) == 0
    assert FLAT.message({"role": "user", "content": parts}) == FLAT.message(USER)


def test_media_have_a_fixed_price() -> None:
    assert FLAT.content([IMAGE]) == 256
    assert FLAT.message({"role": "user", "content": [{"type": "text", "text": "Hello, world!"}, IMAGE]}) == 263
    huge = {"type": "image_url", "image_url": {"url": "data:image/png;base64," + "A" * 1_000_000}}
    assert FLAT.content([huge, IMAGE]) == 512
    dear = TokenCounter.flat(EstimatorConfig(media_tokens=1_600))
    assert dear.content([IMAGE]) == 1_600


def test_anthropic_blocks() -> None:
    message = {
        "role": "assistant",
        "content": [
            {
                "type": "thinking",
                "thinking": "hmm, hmm",
                "signature": "c2ln" * 100,
            },  # 8; the signature is opaque
            {"type": "redacted_thinking", "data": "ZGF0YQ==" * 100},  # opaque
            {"type": "text", "text": "Reading."},  # 8
            {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "a.py"}},  # 7 + 4 + 15
        ],
    }
    assert FLAT.message(message) == 14  # 8 + 8 + 26 + 12 = 54: 13.5; the input is counted as compact JSON
    result = {"type": "tool_result", "tool_use_id": "toolu_1", "content": [{"type": "text", "text": "x = 1"}]}
    assert FLAT.message({"role": "user", "content": [result]}) == 6  # 7 + 5 + 12 = 24


def test_an_unknown_block_is_not_free() -> None:
    block = {"type": "search_result", "title": "Docs"}
    assert FLAT.content([block]) == 10  # {"type":"search_result","title":"Docs"} has 39 characters: 9.75


def test_a_list_is_the_plain_sum() -> None:
    assert FLAT.messages([USER, CALL, RESULT]) == 7 + 14 + 6
    assert FLAT([USER, CALL, RESULT]) == 27
    assert FLAT.messages((USER, CALL, RESULT)) == 27
    assert FLAT.messages([]) == 0


def test_tools() -> None:
    assert FLAT.tools([TOOL]) == 17  # 11 + 17 + 17 ({"type":"object"}) + 20 for the frame = 65: 16.25
    assert FLAT.tools([TOOL, TOOL]) == 33  # 130: 32.5, rounded once
    assert FLAT.tools([]) == 0
    anthropic = {
        "name": "get_weather",
        "description": "Weather of a city",
        "input_schema": {"type": "object"},
    }
    assert FLAT.tools([anthropic]) == 17
    assert FLAT.messages([USER], tools=[TOOL]) == 7 + 17


def test_request() -> None:
    assert FLAT.request({"model": "gpt-4o", "messages": [USER, CALL, RESULT], "tools": [TOOL]}) == 27 + 17
    # Anthropic's system prompt stands beside the messages; it costs what a system message costs.
    assert FLAT.request({"system": "Hello, world!", "messages": [USER]}) == 7 + 7
    system = [{"type": "text", "text": "Hello, world!", "cache_control": {"type": "ephemeral"}}]
    assert FLAT.request({"system": system, "messages": [USER]}) == 7 + 7


def test_rates_of_the_configuration() -> None:
    assert TokenCounter.flat(EstimatorConfig(chars_per_token=2.5)).message(USER) == 10  # 25 / 2.5
    assert TokenCounter.flat(EstimatorConfig(rounding="down")).message(USER) == 6  # 6.25
    assert TokenCounter.flat(EstimatorConfig(message_overhead=0)).message(USER) == 4  # 13: 3.25
    assert TokenCounter.flat(EstimatorConfig(tool_overhead=0)).tools([TOOL]) == 12  # 45: 11.25
    assert TokenCounter.flat(EstimatorConfig(unit="bytes")).text("漢字") == 2  # 6 bytes: 1.5
    # PicoClaw's mixture: content in characters, what a call holds in bytes.
    mixed = TokenCounter.flat(EstimatorConfig(unit="mixed", message_overhead=0))
    assert mixed.message({"role": "user", "content": "漢" * 8}) == 2
    function = {"name": "", "arguments": "漢" * 8}
    assert mixed.message({"role": "assistant", "tool_calls": [{"function": function}]}) == 6  # 24 bytes


def test_seed_rules() -> None:
    """Bytes per token: English 4, JSON and code 2, Thai 2 to 3 (2.5)."""
    seed = TokenCounter.flat(EstimatorConfig.seed_rules())
    assert seed.text("The build is green and the tests pass...") == 10  # English, 40 bytes / 4
    assert seed.text("สวัสดีครับ") == 12  # Thai, 10 characters = 30 bytes / 2.5
    assert seed.text("The สวัสดี") == 9  # 4 / 4 + 18 / 2.5 = 8.2
    # JSON is recognised by where it stands: arguments, schemas, tool outputs, names, ids.
    assert seed.message({"role": "user", "content": "x" * 28}) == 10  # (28 + 12) / 4
    assert seed.message({"role": "tool", "tool_call_id": "call_1", "content": '{"ok":true}'}) == 12  # 17/2 + 12/4
    assert seed.message(CALL) == 24  # (6 + 8 + 11 + 16) / 2 + 12 / 4 = 23.5
    assert seed.tools([TOOL]) == 33  # (11 + 17 + 17 + 20) / 2 = 32.5


def test_default_counter() -> None:
    """The estimate for OpenAI's models: totals are raised by 3 %."""
    default = TokenCounter.default()
    assert default == TokenCounter.estimator("o200k") == TokenCounter.estimator()
    counts = [default.message(message) for message in (USER, CALL, RESULT)]
    assert counts == [8, 12, 6]
    assert count_tokens([USER, CALL, RESULT]) == default.messages([USER, CALL, RESULT]) == 27  # 26 * 1.03 = 26.78


def test_picoclaw() -> None:
    assert TokenCounter.picoclaw("4.0").message(USER) == 7  # 25 / 4 rounded up
    assert TokenCounter.picoclaw("2.5").message(USER) == 10  # 25 / 2.5
    assert TokenCounter.picoclaw("2.5").message({"role": "user", "content": "Hello, world"}) == 9  # 9.6 down
    with pytest.raises(ValueError, match="version"):
        TokenCounter.picoclaw("3.0")  # type: ignore[arg-type]


# --------------------------------------------------------------------------------------------- any str -> int


def words(text: str) -> int:
    """A tokenizer to pickle."""
    return len(text.split())


def test_from_callable() -> None:
    counter = TokenCounter.from_callable(words)
    assert counter.text("one two three") == 3
    assert counter.message({"role": "user", "content": "one two three"}) == 3 + 4  # 4 for the frame
    assert counter.content([{"type": "text", "text": "one two"}, {"type": "text", "text": "three"}, IMAGE]) == 259
    # Each text by itself: content, name and arguments; ids are not sent as text.
    call = {"id": "call_1 x y z", "type": "function", "function": {"name": "ls", "arguments": "-l -a"}}
    assert counter.message({"role": "assistant", "content": "I look", "tool_calls": [call]}) == 2 + 1 + 2 + 4
    assert counter.tools([TOOL]) == 1 + 4 + 1 + 4  # name, description, schema, frame


def test_from_callable_with_other_prices() -> None:
    counter = TokenCounter.from_callable(words, message_overhead=0, media_tokens=100)
    assert counter.message({"role": "user", "content": [{"type": "text", "text": "one two"}, IMAGE]}) == 102
    assert counter.messages([{"role": "user", "content": ""}]) == 0


def test_from_callable_wants_a_number() -> None:
    wrong: list[tuple[Any, type[Exception]]] = [
        (lambda text: -1, ValueError),
        (lambda text: 1.5, TypeError),
        (lambda text: True, TypeError),
        (lambda text: None, TypeError),
    ]
    for function, error in wrong:
        with pytest.raises(error):
            TokenCounter.from_callable(function).text("a")
    with pytest.raises(ZeroDivisionError):  # the function's own errors come through
        TokenCounter.from_callable(lambda text: 1 // 0).text("a")


# -------------------------------------------------------------------------------------------- limits and cuts


def test_fits() -> None:
    assert FLAT.fits("x" * 40, 10)
    assert not FLAT.fits("x" * 41, 10)
    assert FLAT.fits([USER, CALL, RESULT], 27)
    assert not FLAT.fits([USER, CALL, RESULT], 26)
    assert FLAT.fits(USER, 7)
    assert FLAT.fits("", 0)
    assert not FLAT.fits("x", 0)


def test_a_batch_is_each_text_by_itself() -> None:
    texts = [
        "",
        "abc",
        "some words, " * 30_000,
        "ก" * 90_000,
        "🧠" * 70_000,
        "\ud800",
        *("x" * 900 for _ in range(400)),
    ]
    words = TokenCounter.from_callable(lambda text: len(text.split()))
    exact = TokenCounter.exact("cl100k_base")
    for counter in (FLAT, TokenCounter.default(), TokenCounter.for_model("claude-opus-4-5", safety=0.99), words, exact):
        expected = [counter.text(text) for text in texts]
        for threads in (None, 1, 2, 5, 10**30):
            assert counter.batch(texts, threads=threads) == expected
        assert counter.batch(tuple(texts[:3])) == expected[:3]
        assert counter.batch([]) == []


def test_what_is_no_batch_is_refused() -> None:
    with pytest.raises(MessageTypeError, match=r"Expected `str`, got `int` - at `texts\[1\]`"):
        FLAT.batch(["a", 1])  # type: ignore[list-item]
    with pytest.raises(MessageTypeError, match=r"Expected a list of strings, got `str` - at `texts`"):
        FLAT.batch("a")
    with pytest.raises(ValueError, match="threads: expected 1 or more, got 0"):
        FLAT.batch(["a"], threads=0)
    with pytest.raises(ZeroDivisionError):
        TokenCounter.from_callable(lambda text: 1 // 0).batch(["a"])


def test_a_batch_lets_others_run() -> None:
    """The loop ticks on while a thread counts for it."""
    counter = TokenCounter.default()

    async def count() -> tuple[list[int], int]:
        ticks = 0
        batch = asyncio.create_task(asyncio.to_thread(counter.batch, ["ก" * 1_000_000] * 20, threads=1))
        while not batch.done():
            await asyncio.sleep(0)
            ticks += 1
        return await batch, ticks

    counts, ticks = asyncio.run(count())
    assert counts == [counter.text("ก" * 1_000_000)] * 20
    assert ticks > 2


def test_count_up_to_a_limit() -> None:
    words = TokenCounter.from_callable(lambda text: len(text.split()))
    for counter, text in ((FLAT, "x" * 41), (TokenCounter.estimator("o200k"), "some words " * 40), (words, "a b c")):
        tokens = counter.text(text)
        for limit in (0, 1, tokens - 1, tokens, tokens + 1, 10**12):
            assert counter.count_up_to(text, limit) == min(tokens, limit + 1)
    assert FLAT.count_up_to("", 0) == 0


def test_head_and_tail() -> None:
    text = "".join(chr(ord("a") + index % 26) for index in range(100))
    assert FLAT.head(text, 2) == "abcdefgh"  # 8 characters: 2 tokens; a ninth would be a third
    assert FLAT.tail(text, 2) == text[-8:]
    assert FLAT.head(text, 25) == FLAT.tail(text, 25) == text
    assert FLAT.head(text, 0) == FLAT.tail(text, 0) == ""
    down = TokenCounter.flat(EstimatorConfig(chars_per_token=2.5, rounding="down"))
    assert down.head(text, 2) == "abcdefg"  # 7 / 2.5 = 2.8, rounded down
    assert TokenCounter.from_callable(len).head("สวัสดี", 3) == "สวั"
    assert TokenCounter.from_callable(len).tail("a😀b😀", 3) == "😀b😀"


@pytest.mark.parametrize("limit", [-1, math.nan, math.inf, True])
def test_a_limit_is_a_number_of_tokens(limit: Any) -> None:
    for use in (FLAT.fits, FLAT.head, FLAT.tail):
        with pytest.raises(BudgetError):
            use("text", limit)


# --------------------------------------------------------------------------------------------- values, errors


COUNTERS = [
    TokenCounter.default(),
    TokenCounter.picoclaw("4.0"),
    TokenCounter.picoclaw("2.5"),
    TokenCounter.flat(EstimatorConfig()),
    TokenCounter.flat(EstimatorConfig.seed_rules()),
    TokenCounter.flat(EstimatorConfig(chars_per_token=3.7, rounding="down", unit="bytes", media_tokens=0)),
    TokenCounter.estimator("claude_v47"),
    TokenCounter.estimator("o200k", safety=0.5),
    TokenCounter.estimator("o200k", safety=0.99),
    TokenCounter.estimator("o200k", message_overhead=3, media_tokens=0),
    TokenCounter.for_model("gpt-5"),
    TokenCounter.for_model("gpt-5", exact=False),
    TokenCounter.for_model("gpt-5", exact=False, safety=0.99),
    TokenCounter.for_model("gpt-4"),
    TokenCounter.exact("o200k_base"),
    TokenCounter.for_model("claude-opus-4-7", safety=0.95),
    TokenCounter.for_model(replace(model_info("gpt-5"), context_window=1_000, scale=1.1)),
    TokenCounter.from_callable(len),
    TokenCounter.from_callable(words, message_overhead=3, media_tokens=0),
]


@pytest.mark.parametrize("counter", COUNTERS, ids=repr)
def test_a_counter_is_a_value(counter: TokenCounter) -> None:
    """Equal counters count alike: they are hashable, picklable, and equal to no other."""
    again = pickle.loads(pickle.dumps(counter))
    assert again == counter
    assert hash(again) == hash(counter)
    assert again.messages([USER, CALL, RESULT], [TOOL]) == counter.messages([USER, CALL, RESULT], [TOOL])
    assert [other for other in COUNTERS if other == counter] == [counter]
    assert counter != "a counter"
    assert counter == mock.ANY  # the other side is asked too
    with pytest.raises(AttributeError):
        setattr(counter, "chars_per_token", 1)  # noqa: B010


def test_repr_is_the_call_that_makes_it() -> None:
    assert repr(TokenCounter.default()) == "TokenCounter.default()"
    assert repr(TokenCounter.picoclaw("4.0")) == "TokenCounter.picoclaw('4.0')"
    names = {"TokenCounter": TokenCounter, **vars(ctxfast.counting), **vars(ctxfast.models)}
    for counter in COUNTERS[:-2]:  # a function's repr is no expression
        made = eval(repr(counter), names)
        assert made == counter


def test_count_tokens() -> None:
    """One call for a text, a message or a list; with the default counter unless another is given."""
    assert count_tokens("Hello, world!") == 4
    assert count_tokens(USER) == 8
    assert count_tokens([USER, USER]) == 17  # 16 * 1.03
    assert count_tokens([USER], tools=[TOOL]) == 25  # (8 + 16) * 1.03 = 24.72
    assert count_tokens([USER], counter=FLAT) == 7


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"chars_per_token": 0}, ValueError),
        ({"chars_per_token": math.nan}, ValueError),
        ({"chars_per_token": "4"}, TypeError),
        ({"message_overhead": -1}, ValueError),
        ({"message_overhead": 1.5}, TypeError),
        ({"rounding": "nearest"}, ValueError),
        ({"unit": "words"}, ValueError),
    ],
)
def test_a_configuration_without_sense(change: dict[str, Any], error: type[Exception]) -> None:
    with pytest.raises(error, match=next(iter(change))):
        EstimatorConfig(**change)


def test_errors_say_what_was_expected_what_came_and_where() -> None:
    with pytest.raises(MessageTypeError) as caught:
        FLAT.messages([USER, {"role": "user", "content": 5}])
    assert (caught.value.path, caught.value.got) == ("messages[1].content", "`int`")
    assert str(caught.value) == "Expected `str`, `None` or a list of parts, got `int` - at `messages[1].content`"
    with pytest.raises(MessageValueError) as no_role:
        FLAT.messages([{"content": "hi"}])
    assert no_role.value.path == "messages[0]"
    for wrong in (5, {"messages": "hi"}, {"system": "hi"}):
        with pytest.raises((TypeError, ValueError)):
            FLAT.request(wrong)
