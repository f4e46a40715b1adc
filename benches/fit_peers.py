"""Cutting a conversation to a budget with what frameworks ship, and what is wrong with the result: a table.

    python benches/fit_peers.py                          100 + 100 conversations, then times; needs the group `peers`
    python benches/fit_peers.py --page docs/fitting.md   writes the table into the page
    python benches/fit_peers.py --cases 10 --no-times    quick

Each peer gets the same conversations (`fit_corpus.py`) in its own message objects, and a budget that is the same share
of what its own counter gives for the whole; the result is turned back, checked by `fit_corpus.py`, and measured with
that same counter. Frameworks that keep the system prompt outside the list get the list without it.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import importlib
import importlib.util
import logging
import os
import re
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from functools import partial
from itertools import groupby
from pathlib import Path
from statistics import mean, median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import ctxfast
from benches.fit_corpus import KINDS, Case, Kind, cases, has, is_invalid, long_conversation, newest_user
from benches.timing import run
from benches.transcripts import Message

MODEL = "gpt-4o"  # for those that count with a model's tokenizer
SIZE = 988  # messages of the conversation that is timed
SHARE = 0.25  # of it that may stay
ROUNDS = 5
ENOUGH = 30.0  # seconds after which a contender is timed no more
LEAST = 0.02  # seconds of a sample

Messages = list[Message]


@dataclass(frozen=True)
class Peer:
    """How a peer cuts, in its own objects."""

    counter: str
    """What it counts with, as the table says it."""
    load: Callable[[Messages], Any]
    count: Callable[[Any], int]
    cut: Callable[[Any, int], Any]
    back: Callable[[Any], Messages]
    system: bool = True
    """Whether the system prompt belongs into its list."""


def same(messages: Any) -> Any:
    return messages


def module(name: str) -> Any:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return importlib.import_module(name)


def names_of_calls(messages: Messages) -> dict[str, str]:
    return {call["id"]: call["function"]["name"] for message in messages for call in message.get("tool_calls", ())}


def call_of(call_id: str, name: str, arguments: str) -> Message:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


# ----------------------------------------------------------------------------------------------------- contenders


def ours() -> Peer:
    fit = ctxfast.fit_messages
    return Peer("own, estimate", same, ctxfast.count_tokens, lambda given, budget: fit(given, budget).messages, same)


def langchain(**options: Any) -> Peer:
    utils = module("langchain_core.messages.utils")

    def cut(given: Any, budget: int) -> Any:
        return utils.trim_messages(given, max_tokens=budget, token_counter="approximate", **options)

    return Peer(
        "own, characters / 4",
        utils.convert_to_messages,
        utils.count_tokens_approximately,
        cut,
        lambda kept: list(module("langchain_core.messages").convert_to_openai_messages(kept)),
    )


def langchain_recipe() -> Peer:
    return langchain(include_system=True, start_on="human")


def litellm() -> Peer:
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # without it `import litellm` fetches a table
    package, utils = module("litellm"), module("litellm.utils")
    return Peer(
        f"own, exact ({MODEL})",
        same,
        lambda given: int(package.token_counter(model=MODEL, messages=given)),
        lambda given, budget: utils.trim_messages(given, model=MODEL, max_tokens=budget),
        same,
    )


def llama_index_objects() -> tuple[Callable[[Messages], Any], Callable[[Any], Messages]]:
    types = module("llama_index.core.base.llms.types")

    def one(message: Message) -> Any:
        blocks = [types.TextBlock(text=message["content"])]
        for call in message.get("tool_calls", ()):
            called = call["function"]
            blocks.append(
                types.ToolCallBlock(tool_call_id=call["id"], tool_name=called["name"], tool_kwargs=called["arguments"])
            )
        more = {"tool_call_id": message["tool_call_id"]} if message["role"] == "tool" else {}
        return types.ChatMessage(role=message["role"], blocks=blocks, additional_kwargs=more)

    def back(kept: Any) -> Messages:
        found = []
        for message in kept:
            plain: Message = {"role": message.role.value, "content": message.content or ""}
            blocks = [block for block in message.blocks if isinstance(block, types.ToolCallBlock)]
            calls = [call_of(block.tool_call_id, block.tool_name, block.tool_kwargs) for block in blocks]
            found.append(plain | ({"tool_calls": calls} if calls else {}) | message.additional_kwargs)
        return found

    return lambda messages: [one(message) for message in messages], back


def llama_index_buffer() -> Peer:
    buffer = module("llama_index.core.memory").ChatMemoryBuffer
    load, back = llama_index_objects()
    counting = buffer.from_defaults(token_limit=1)

    def cut(given: Any, budget: int) -> Any:
        return buffer.from_defaults(chat_history=given, token_limit=budget).get()

    return Peer("own, exact (cl100k)", load, counting._token_count_for_messages, cut, back, system=False)


def llama_index_memory() -> Peer:
    """All messages put at once, then got; its store is a database in memory."""
    memory = module("llama_index.core.memory").Memory
    load, back = llama_index_objects()
    counting = memory.from_defaults(token_limit=1)
    loop = asyncio.new_event_loop()  # one for all calls: its database answers from a thread

    async def put_and_get(given: Any, budget: int) -> Any:
        own = memory.from_defaults(token_limit=budget)
        await own.aput_messages(given)
        return await own.aget()

    return Peer(
        "own, exact (cl100k)",
        load,
        lambda given: sum(counting._estimate_token_count(message) for message in given),
        lambda given, budget: loop.run_until_complete(put_and_get(given, budget)),
        back,
        system=False,
    )


def autogen() -> Peer:
    core, models = module("autogen_core"), module("autogen_core.models")
    limited = module("autogen_core.model_context").TokenLimitedChatCompletionContext
    client = module("autogen_ext.models.openai").OpenAIChatCompletionClient(model=MODEL, api_key="none")

    def load(messages: Messages) -> Any:
        names = names_of_calls(messages)
        found: list[Any] = []
        for role, run_of in groupby(messages, key=lambda message: message["role"]):
            if role == "tool":  # the results of a step are one message
                results = [
                    models.FunctionExecutionResult(
                        call_id=message["tool_call_id"],
                        content=message["content"],
                        name=names[message["tool_call_id"]],
                        is_error=False,
                    )
                    for message in run_of
                ]
                found.append(models.FunctionExecutionResultMessage(content=results))
                continue
            for message in run_of:
                said, calls = message["content"], message.get("tool_calls")
                if role == "user":
                    found.append(models.UserMessage(content=said, source="user"))
                elif calls:
                    functions = [core.FunctionCall(id=call["id"], **call["function"]) for call in calls]
                    found.append(models.AssistantMessage(content=functions, thought=said, source="agent"))
                else:
                    found.append(models.AssistantMessage(content=said, source="agent"))
        return found

    def back(kept: Any) -> Messages:
        found: Messages = []
        for message in kept:
            if message.type == "FunctionExecutionResultMessage":
                results = message.content
                found += [{"role": "tool", "tool_call_id": one.call_id, "content": one.content} for one in results]
            elif message.type == "UserMessage":
                found.append({"role": "user", "content": message.content})
            elif isinstance(message.content, str):
                found.append({"role": "assistant", "content": message.content})
            else:
                calls = [call_of(call.id, call.name, call.arguments) for call in message.content]
                found.append({"role": "assistant", "content": message.thought, "tool_calls": calls})
        return found

    def cut(given: Any, budget: int) -> Any:
        return run(limited(client, token_limit=budget, initial_messages=given).get_messages())

    return Peer(f"own, exact ({MODEL})", load, client.count_tokens, cut, back, system=False)


def haystack() -> Peer:
    chat_message = module("haystack.dataclasses").ChatMessage
    counter = module("haystack.token_counters").ApproximateTokenCounter()
    compactor = module("haystack.hooks.compaction").SlidingWindowCompactor()
    return Peer(
        "own, characters / 4",
        lambda messages: [chat_message.from_openai_dict_format(message) for message in messages],
        counter.count,
        lambda given, budget: compactor.compact(given, budget, counter) or given,
        lambda kept: [message.to_openai_dict_format() for message in kept],
    )


def pydantic_ai(kept_share: float) -> Peer:
    """pydantic-ai-harness. `keep_tokens` is the least that it keeps, so the full budget is not the only choice."""
    compaction, ai = module("pydantic_ai_harness.compaction"), module("pydantic_ai.messages")
    shared, model = module("pydantic_ai_harness.compaction._shared"), module("pydantic_ai.models.test").TestModel()

    def load(messages: Messages) -> Any:
        names = names_of_calls(messages)
        objects: list[Any] = []
        for answered, run_of in groupby(messages, key=lambda message: message["role"] == "assistant"):
            if not answered:  # what goes to the model together is one request
                parts = {"system": ai.SystemPromptPart, "user": ai.UserPromptPart}
                objects.append(
                    ai.ModelRequest(
                        [
                            ai.ToolReturnPart(names[one["tool_call_id"]], one["content"], one["tool_call_id"])
                            if one["role"] == "tool"
                            else parts[one["role"]](one["content"])
                            for one in run_of
                        ]
                    )
                )
                continue
            for message in run_of:
                calls = [(call["function"], call["id"]) for call in message.get("tool_calls", ())]
                asked = [ai.ToolCallPart(called["name"], called["arguments"], id_) for called, id_ in calls]
                objects.append(ai.ModelResponse([ai.TextPart(message["content"]), *asked]))
        return objects

    def back(kept: Any) -> Messages:
        found: Messages = []
        for message in kept:
            if message.kind == "response":
                said = "".join(part.content for part in message.parts if part.part_kind == "text")
                asked = [part for part in message.parts if part.part_kind == "tool-call"]
                calls = [call_of(part.tool_call_id, part.tool_name, part.args) for part in asked]
                found.append({"role": "assistant", "content": said, **({"tool_calls": calls} if calls else {})})
                continue
            for part in message.parts:
                if part.part_kind == "tool-return":
                    found.append({"role": "tool", "tool_call_id": part.tool_call_id, "content": part.content})
                else:
                    role = {"system-prompt": "system", "user-prompt": "user"}[part.part_kind]
                    found.append({"role": role, "content": part.content})
        return found

    def cut(given: Any, budget: int) -> Any:
        strategy = compaction.SlidingWindowCompaction(max_tokens=budget, keep_tokens=round(budget * kept_share))
        return run(compaction.compact_now(strategy, given, model=model))

    return Peer("own, characters / 4", load, shared.estimate_token_count, cut, back)


PEERS: dict[str, Callable[[], Peer]] = {
    "**ctxfast** `fit_messages`": ours,
    "haystack `SlidingWindowCompactor`": haystack,
    "pydantic-ai-harness `SlidingWindowCompaction`, keep the budget": lambda: pydantic_ai(1.0),
    "the same, keep half of it": lambda: pydantic_ai(0.5),
    "langchain-core `trim_messages`, defaults": langchain,
    'the same, `include_system`, `start_on="human"`': langchain_recipe,
    "litellm `trim_messages`": litellm,
    "llama_index `ChatMemoryBuffer`": llama_index_buffer,
    "llama_index `Memory`": llama_index_memory,
    "autogen `TokenLimitedChatCompletionContext`": autogen,
}


# -------------------------------------------------------------------------------------------------------- results


@dataclass
class Faults:
    """How many results of a peer have which fault; how full the budget is."""

    raised: int = 0
    invalid: int = 0
    user: int = 0
    system: int = 0
    over: int = 0
    fills: list[float] = field(default_factory=list)


def given_to(peer: Peer, case: Case) -> Messages:
    return case.messages if peer.system else case.messages[1:]


def look(peer: Peer, several: Iterator[Case]) -> Faults:
    """Cut each of the conversations, and look at what is left."""
    faults = Faults()
    for case in several:
        messages = given_to(peer, case)
        objects = peer.load(messages)
        assert peer.back(objects) == messages  # what is checked below is what the peer had
        budget = int(case.share * peer.count(objects))
        try:
            kept = peer.cut(objects, budget)
        except Exception as error:
            print(f"raised: {error!r:.200}", file=sys.stderr)
            faults.raised += 1
            continue
        assert peer.back(objects) == messages  # its input is as it was
        plain, tokens = peer.back(kept), peer.count(kept)
        faults.invalid += is_invalid(plain)
        faults.user += not has(plain, newest_user(messages))
        faults.system += not has(plain, case.messages[0])
        faults.over += tokens > budget
        faults.fills.append(tokens / budget)
    return faults


def timed(call: Callable[[], object], repeats: int = 1) -> float:
    start = time.perf_counter()
    for _ in range(repeats):
        call()
    return (time.perf_counter() - start) / repeats


def times(peers: dict[str, Peer]) -> dict[str, float]:
    """Seconds per call, medians; contenders take turns. That something is cut is asserted first."""
    messages = long_conversation(SIZE)
    calls: dict[str, Callable[[], Any]] = {}
    repeats: dict[str, int] = {}
    for name, peer in peers.items():
        objects = peer.load(given_to(peer, Case(messages, SHARE)))
        budget = int(SHARE * peer.count(objects))
        calls[name] = partial(peer.cut, objects, budget)
        start = time.perf_counter()
        kept = calls[name]()
        repeats[name] = max(1, round(LEAST / (time.perf_counter() - start)))
        plain = peer.back(kept)
        assert 0 < len(plain) < len(messages), name
        if PEERS[name] is ours:
            assert not is_invalid(plain)
            assert peer.count(kept) <= budget
    samples: dict[str, list[float]] = {name: [] for name in calls}
    gc.collect()
    gc.disable()
    try:
        for _ in range(ROUNDS):
            for name, call in calls.items():
                if sum(samples[name]) < ENOUGH:
                    if repeats[name] > 1:
                        call()
                    samples[name].append(timed(call, repeats[name]))
    finally:
        gc.enable()
    return {name: median(taken) for name, taken in samples.items()}


def duration(seconds: float) -> str:
    return f"{seconds:,.1f} s" if seconds >= 1 else f"{seconds * 1e3:,.{1 if seconds < 0.1 else 0}f} ms"


def row(name: str, peer: Peer, found: dict[Kind, Faults], took: dict[str, float]) -> list[str]:
    both = [found[kind] for kind in KINDS]

    def cell(of: Callable[[Faults], object]) -> str:
        return " / ".join(str(of(faults)) for faults in both)

    own = next((seconds for other, seconds in took.items() if PEERS[other] is ours), None)
    raised = cell(lambda faults: faults.raised) if any(faults.raised for faults in both) else ""
    return [
        name + (f" (raises: {raised})" if raised else ""),
        peer.counter,
        cell(lambda faults: faults.invalid),
        cell(lambda faults: faults.user),
        cell(lambda faults: faults.system) if peer.system else "-",
        cell(lambda faults: faults.over),
        cell(lambda faults: f"{mean(faults.fills):.2f}" if faults.fills else "-"),
        duration(took[name]) if name in took else "",
        f"{took[name] / own:,.{0 if took[name] > 10 * own else 1}f}" if own and name in took else "",
    ]


HEAD = [
    "",
    "counter",
    "invalid",
    "last user message lost",
    "system message lost",
    "over budget",
    "mean fill",
    f"{SIZE} messages",
    "time, ctxfast = 1",
]


def table(rows: list[list[str]]) -> str:
    lines = [HEAD, ["---"] * 2 + ["--:"] * (len(HEAD) - 2), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)


def into_page(page: Path, text: str) -> None:
    place = re.compile(r"(<!-- table: peers -->\n)(?:\|.*\n)*(?=<!-- end -->)")
    new, found = place.subn(lambda match: f"{match[1]}{text}\n", page.read_text(encoding="utf-8"))
    if not found:
        raise ValueError(f"{page} has no place for the table 'peers'")
    page.write_text(new, encoding="utf-8")


def offline() -> None:
    """Tokenizers come from LiteLLM's wheel, which has those of OpenAI; nothing is fetched."""
    spec = importlib.util.find_spec("litellm")
    if spec is not None and spec.origin is not None:
        folder = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
        os.environ.setdefault("TIKTOKEN_CACHE_DIR", str(folder))


def main() -> None:
    parser = argparse.ArgumentParser(description="Cutting a conversation to a budget: ctxfast and its peers.")
    parser.add_argument("--cases", type=int, default=100, help="conversations of each kind")
    parser.add_argument("--only", default="", help="peers whose name has this in it")
    parser.add_argument("--no-times", action="store_true", help="only look at the results")
    parser.add_argument("--page", type=Path, help="a page of Markdown whose table is written anew")
    options = parser.parse_args()
    offline()
    logging.disable(logging.CRITICAL)
    warnings.simplefilter("ignore")
    peers: dict[str, Peer] = {}
    for name, make in PEERS.items():
        if options.only not in name:
            continue
        try:
            peers[name] = make()
        except ImportError as error:
            if options.page is not None:
                raise
            print(f"left out: {name}: {error}", file=sys.stderr)
    found = {}
    for name, peer in peers.items():
        start = time.perf_counter()
        found[name] = {kind: look(peer, cases(kind, options.cases)) for kind in KINDS}
        print(f"{time.perf_counter() - start:7.1f} s  {name}", file=sys.stderr)
    took = {} if options.no_times else times(peers)
    text = table([row(name, peer, found[name], took) for name, peer in peers.items()])
    if options.page is None:
        print(text)
    else:
        into_page(options.page, text)


if __name__ == "__main__":
    main()
