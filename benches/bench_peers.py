"""What frameworks ship for counting and trimming, against ctxfast; skipped for packages not installed.

Their answers differ by design (other rates, other rules), so what is asserted is a relation: counts of the
same order of magnitude, and of our own trim that it is within the budget and valid. Conversion into a
framework's message objects is not timed unless the name says "dicts".
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches.conftest import Transcripts
from benches.transcripts import Message, with_recent_turns

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # without it `import litellm` fetches a table

ctxfast = pytest.importorskip("ctxfast")
pytestmark = [pytest.mark.filterwarnings("ignore"), pytest.mark.timeout(900)]

BUDGET = 8_000
MODEL = "gpt-4o"  # litellm's wheel holds this tokenizer

Call = Callable[[], Any]


def module(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            return importlib.import_module(name)
        except ImportError as error:
            pytest.skip(str(error))


def langchain_count(messages: list[Message]) -> Call:
    utils = module("langchain_core.messages.utils")
    objects = utils.convert_to_messages(messages)
    return lambda: utils.count_tokens_approximately(objects)


def langchain_count_dicts(messages: list[Message]) -> Call:
    utils = module("langchain_core.messages.utils")
    return lambda: utils.count_tokens_approximately(messages)


def langchain_trim(messages: list[Message]) -> Call:
    utils = module("langchain_core.messages.utils")
    objects = utils.convert_to_messages(messages)
    options = {"token_counter": "approximate", "include_system": True, "start_on": "human"}
    return lambda: utils.trim_messages(objects, max_tokens=BUDGET, **options)


def haystack_objects(messages: list[Message]) -> Any:
    chat_message = module("haystack.dataclasses").ChatMessage
    return [chat_message.from_openai_dict_format(message) for message in messages]


def haystack_count(messages: list[Message]) -> Call:
    objects = haystack_objects(messages)
    counter = module("haystack.token_counters").ApproximateTokenCounter()
    return lambda: counter.count(objects)


def haystack_trim(messages: list[Message]) -> Call:
    objects = haystack_objects(messages)
    counter = module("haystack.token_counters").ApproximateTokenCounter()
    compactor = module("haystack.hooks.compaction").SlidingWindowCompactor()
    return lambda: compactor.compact(objects, BUDGET, counter)


def litellm_count(messages: list[Message]) -> Call:
    count = module("litellm").token_counter
    return lambda: count(model=MODEL, messages=messages)


def litellm_trim(messages: list[Message]) -> Call:
    trim = module("litellm.utils").trim_messages
    # It gives up on `content: None` and on parts, and returns everything: it gets strings.
    strings = [
        message | {"content": content if isinstance(content, str) else content[0]["text"] if content else ""}
        for message in messages
        for content in [message["content"]]
    ]
    return lambda: trim(strings, model=MODEL, max_tokens=BUDGET)


COUNTS: dict[str, Callable[[list[Message]], Call]] = {
    "ctxfast": lambda messages: lambda: ctxfast.count_tokens(messages),
    "langchain objects": langchain_count,
    "langchain dicts": langchain_count_dicts,
    "haystack objects": haystack_count,
    "litellm dicts, exact": litellm_count,
}
TRIMS: dict[str, Callable[[list[Message]], Call]] = {
    "ctxfast": lambda messages: lambda: ctxfast.select_fresh_tail(messages, BUDGET).messages,
    "langchain objects": langchain_trim,
    "haystack objects": haystack_trim,
    "litellm dicts, exact": litellm_trim,
}


@pytest.mark.parametrize("peer", COUNTS)
@pytest.mark.sizes_up_to(1_000)
def test_peer_count(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, peer: str) -> None:
    benchmark.group = f"peers: count {size}"
    messages = transcripts(size, storage="real")
    call = COUNTS[peer](messages)
    own = ctxfast.count_tokens(messages)
    assert own / 10 < call() < own * 10
    benchmark(call)


@pytest.mark.parametrize("peer", TRIMS)
@pytest.mark.sizes_up_to(1_000)
def test_peer_trim(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, peer: str) -> None:
    benchmark.group = f"peers: trim {size} to {BUDGET} tokens"
    messages = with_recent_turns(transcripts(size - 60, storage="real"))
    tail = ctxfast.select_fresh_tail(messages, BUDGET)
    assert ctxfast.count_tokens(tail.messages[1:]) == tail.tokens <= BUDGET  # all but the system message
    assert unpaired(tail.messages) == []
    call = TRIMS[peer](messages)
    kept = call()
    assert 0 < len(kept) < len(messages)
    benchmark.extra_info["kept"] = len(kept)
    if isinstance(kept[0], dict):
        benchmark.extra_info["unpaired"] = unpaired(kept)
    rounds = 3 if peer.startswith("litellm") else 20  # seconds a call
    benchmark.pedantic(call, rounds=rounds, iterations=1 if rounds == 3 else 5)  # type: ignore[no-untyped-call]


def unpaired(messages: list[Message]) -> list[str]:
    """Ids of calls without a result and of results without a call."""
    calls = [call["id"] for message in messages for call in message.get("tool_calls") or ()]
    results = [message["tool_call_id"] for message in messages if message["role"] == "tool"]
    return sorted(set(calls) ^ set(results))
