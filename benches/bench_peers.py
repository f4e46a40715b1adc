"""What frameworks ship for counting, trimming and clearing tool results; skipped for packages not installed.

Their answers differ by design (other rates, other rules), so what is asserted is a relation: counts of the
same order of magnitude, of our own trim that it is within the budget and valid, and which results are cleared.
Conversion into a framework's message objects is not timed unless the name says "dicts".
"""

from __future__ import annotations

import importlib
import os
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import pytest
from pytest_benchmark.fixture import BenchmarkFixture

from benches import plain_loop
from benches.conftest import Transcripts
from benches.counters import FLAT
from benches.timing import run
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
    "ctxfast, flat": lambda messages: lambda: FLAT.messages(messages),
    "langchain objects": langchain_count,
    "langchain dicts": langchain_count_dicts,
    "haystack objects": haystack_count,
    "litellm dicts, exact": litellm_count,
}
TRIMS: dict[str, Callable[[list[Message]], Call]] = {
    "ctxfast": lambda messages: lambda: ctxfast.select_fresh_tail(messages, BUDGET).messages,
    "ctxfast, flat": lambda messages: lambda: ctxfast.select_fresh_tail(messages, BUDGET, counter=FLAT).messages,
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


# ------------------------------------------------------------------------------------------ clearing tool results

STUB = "[cleared]"  # LangChain's; the others get it, too
SAME = 12  # characters that are as many tokens as the stub: some clear such results and some do not
KEEP = 3
RATE = 4.0  # characters per token: that of all peers


@dataclass(frozen=True)
class Clearing:
    """How a peer clears tool results, and how to read what it gave."""

    clear: Callable[[Any], Any]
    fresh: Callable[[], Any]
    """Makes what `clear` takes, untimed."""
    results: Callable[[Any], dict[str, Any]]
    """Content of the results in what `clear` gave, by id of their calls."""
    changes_input: bool = False
    own_rules: bool = False
    """It chooses other results: what is asserted is that they are three quarters as much, at least."""


def of_dicts(messages: list[Message]) -> dict[str, Any]:
    return {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}


def on_dicts(clear: Callable[[list[Message]], Any], messages: list[Message], *, own_rules: bool = False) -> Clearing:
    return Clearing(clear, lambda: messages, of_dicts, own_rules=own_rules)


def text(content: Any) -> str:
    """The text of a message's content, be it a string, parts or nothing."""
    return content if isinstance(content, str) else "".join(part["text"] for part in content or ())


def rate() -> Any:
    return ctxfast.TokenCounter.flat(ctxfast.EstimatorConfig(chars_per_token=RATE))


def ctxfast_same(messages: list[Message], tokens: int) -> Clearing:
    """The results that the others clear: the oldest, whatever they are, with one text in their place."""
    counter = rate()
    policy = ctxfast.PrunePolicy(
        protected_steps=1,
        protected_results=KEEP,
        protected_tokens=2 * tokens,  # so that there is one batch, and not three
        prune_threshold=tokens,
        batch="grid" if tokens else "all",
        min_saved=0,
        superseded="off",
        keep_errors="none",
        keep_tools=(),
        keep_paths=(),
        stub=STUB,
    )
    return on_dicts(lambda given: ctxfast.prune_tool_outputs(given, policy=policy, counter=counter).messages, messages)


def ctxfast_own(messages: list[Message], tokens: int) -> Clearing:
    """Its own rules and stubs: small outputs, open errors, listings and sub-agents' answers stay."""
    options = {"prune_threshold": tokens, "protected_tokens": 2 * tokens} if tokens else {"prices": None}
    options["counter"] = rate()
    return on_dicts(lambda given: ctxfast.prune_tool_outputs(given, **options).messages, messages, own_rules=True)


def python_clear(messages: list[Message], tokens: int) -> Clearing:
    return on_dicts(lambda given: plain_loop.clear_results(given, STUB, keep=KEEP, tokens=tokens), messages)


def langchain_clear(messages: list[Message], tokens: int) -> Clearing:
    """`ClearToolUsesEdit` by itself: its middleware makes a deep copy of all messages before it."""
    utils = module("langchain_core.messages.utils")
    editing = module("langchain.agents.middleware.context_editing")
    objects = utils.convert_to_messages(messages)
    edit = editing.ClearToolUsesEdit(trigger=0, clear_at_least=tokens, keep=KEEP, placeholder=STUB)

    def clear(given: list[Any]) -> list[Any]:
        result = list(given)
        edit.apply(result, count_tokens=utils.count_tokens_approximately)
        return result

    def results(cleared: list[Any]) -> dict[str, Any]:
        return {message.tool_call_id: message.content for message in cleared if message.type == "tool"}

    return Clearing(clear, lambda: objects, results)


def haystack_clear(messages: list[Message], tokens: int) -> Clearing:
    """It clears down to a size, and keeps the results of the newest step, not a number of results."""
    objects = haystack_objects(messages)
    counter = module("haystack.token_counters").ApproximateTokenCounter()
    compaction = module("haystack.hooks.compaction")
    compactor = compaction.ToolResultPruningCompactor(min_tokens=0, placeholder=STUB)
    target = counter.count(objects) - tokens

    def results(cleared: list[Any]) -> dict[str, Any]:
        found = [message.tool_call_result for message in cleared if message.tool_call_result]
        return {result.origin.id: result.result for result in found}

    return Clearing(lambda given: compactor.compact(given, target, counter), lambda: objects, results)


def pydantic_ai_clear(messages: list[Message], tokens: int) -> Clearing:
    """pydantic-ai-harness; it knows no share, only how many newest results stay."""
    compaction, ai = module("pydantic_ai_harness.compaction"), module("pydantic_ai.messages")
    names = {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}
    objects: list[Any] = []
    for role, run_of in groupby(messages, key=lambda message: message["role"]):
        if role == "tool":  # the results of a step are one request
            parts = [(message["tool_call_id"], message["content"]) for message in run_of]
            objects.append(ai.ModelRequest([ai.ToolReturnPart(names[id_], text, id_) for id_, text in parts]))
            continue
        for message in run_of:
            said = text(message["content"])
            if role == "assistant":
                calls = [(call["function"], call["id"]) for call in message.get("tool_calls", ())]
                parts = [ai.ToolCallPart(called["name"], called["arguments"], id_) for called, id_ in calls]
                objects.append(ai.ModelResponse([*([ai.TextPart(said)] if said else []), *parts]))
            else:
                part = ai.SystemPromptPart if role == "system" else ai.UserPromptPart
                objects.append(ai.ModelRequest([part(said)]))
    capability = compaction.ClearToolResults(max_tokens=1, keep_pairs=KEEP, placeholder=STUB)

    def results(cleared: list[Any]) -> dict[str, Any]:
        parts = [part for message in cleared for part in message.parts if part.part_kind == "tool-return"]
        return {part.tool_call_id: part.content for part in parts}

    return Clearing(lambda given: run(capability.compact(given, None)), lambda: objects, results)


def agent_framework_clear(messages: list[Message], tokens: int) -> Clearing:
    """It replaces calls and results of a step by one message that begins with the results; keeps 3 steps."""
    framework = module("agent_framework")
    content = framework.Content
    strategy = framework.ToolResultCompactionStrategy(keep_last_tool_call_groups=KEEP)

    def convert(message: Message) -> Any:
        if message["role"] == "tool":
            parts = [content.from_function_result(message["tool_call_id"], result=message["content"])]
            return framework.Message("tool", parts)
        calls = [(call["id"], call["function"]) for call in message.get("tool_calls", ())]
        parts = [
            content.from_function_call(id_, called["name"], arguments=called["arguments"]) for id_, called in calls
        ]
        return framework.Message(message["role"], [text(message["content"]), *parts])

    def results(cleared: list[Any]) -> dict[str, Any]:
        parts = [part for message in cleared for part in message.contents if part.type == "function_result"]
        return {part.call_id: part.result for part in parts}

    def clear(given: list[Any]) -> Any:
        return run(framework.apply_compaction(given, strategy=strategy))

    return Clearing(
        clear, lambda: [convert(message) for message in messages], results, changes_input=True, own_rules=True
    )


CLEARS: dict[str, Callable[[list[Message], int], Clearing]] = {
    "ctxfast, the same results": ctxfast_same,
    "ctxfast, own rules and stubs": ctxfast_own,
    "python loop": python_clear,
    "langchain objects": langchain_clear,
}
CLEARS_SHARE = CLEARS | {"haystack objects": haystack_clear}
CLEARS_ALL = CLEARS | {
    "pydantic-ai-harness objects": pydantic_ai_clear,
    "agent-framework objects": agent_framework_clear,
}


@pytest.mark.parametrize("peer", CLEARS_SHARE)
@pytest.mark.sizes_up_to(1_000)
def test_peer_clear_share(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, peer: str) -> None:
    """The oldest results, until a quarter of all tokens is saved. LangChain: `clear_at_least`."""
    messages = transcripts(size, storage="real")
    benchmark.group = f"peers: clear 25 % of {size}"
    measure_clearing(benchmark, CLEARS_SHARE[peer], messages, rate()(messages) // 4)


@pytest.mark.parametrize("peer", CLEARS_ALL)
@pytest.mark.sizes_up_to(1_000)
def test_peer_clear_all(benchmark: BenchmarkFixture, transcripts: Transcripts, size: int, peer: str) -> None:
    """All results but the newest three."""
    benchmark.group = f"peers: clear all results but {KEEP} of {size}"
    measure_clearing(benchmark, CLEARS_ALL[peer], transcripts(size, storage="real"), 0)


def measure_clearing(
    benchmark: BenchmarkFixture,
    peer: Callable[[list[Message], int], Clearing],
    messages: list[Message],
    tokens: int,
) -> None:
    before = {id_: content for id_, content in of_dicts(messages).items() if len(content) > SAME}
    expected = cleared(before, of_dicts(plain_loop.clear_results(messages, STUB, keep=KEEP, tokens=tokens)))
    clearing = peer(messages, tokens)
    found = cleared(before, clearing.results(clearing.clear(clearing.fresh())))
    if clearing.own_rules:
        assert sum(found.values()) > 0.75 * sum(expected.values())
        assert not set(found) & set(list(before)[-KEEP:])
    else:
        assert found == expected
    benchmark.extra_info["cleared"] = len(found)
    if clearing.changes_input:
        benchmark.pedantic(clearing.clear, setup=lambda: ((clearing.fresh(),), {}), rounds=3)  # type: ignore[no-untyped-call]
    else:
        benchmark(clearing.clear, clearing.fresh())


def cleared(before: dict[str, Any], after: dict[str, Any]) -> dict[str, int]:
    """Characters of the results that are no longer there, by id."""
    return {id_: len(content) for id_, content in before.items() if after.get(id_) != content}
