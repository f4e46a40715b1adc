"""Message objects of the real `openai` and `anthropic` packages, and objects like them: read as dicts are.

Nothing is sent anywhere: the objects are made from response bodies. Skipped without the packages.
"""

from __future__ import annotations

import copy
import dataclasses
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from cases import check_tail, counters, pairing

from ctxfast import EstimatorConfig
from ctxfast.errors import MessageTypeError

Body = dict[str, Any]


def some_counters(package: ModuleType) -> list[Any]:
    make = counters(package)
    seed = make.flat(EstimatorConfig.seed_rules())
    return [make.default(), make.picoclaw("4.0"), make.picoclaw("2.5"), seed, make.from_callable(len)]


def check_same(package: ModuleType, objects: list[Any], dicts: list[Any]) -> None:
    """Objects are counted and cut as the same data in dicts; what comes back are the objects themselves."""
    before = copy.deepcopy(objects)
    for counter in some_counters(package):
        for one, other in zip(objects, dicts, strict=True):
            assert counter.message(one) == counter.message(other), repr(counter)
            assert counter(one) == counter(other)
        assert counter.messages(objects) == counter.messages(dicts)
        assert counter.request({"messages": objects}) == counter.request({"messages": dicts})
        assert counter.fits(objects, counter.messages(dicts))
        assert not counter.fits(objects, counter.messages(dicts) - 1)
    assert package.count_tokens(objects) == package.count_tokens(dicts)

    assert package.atoms(objects) == package.atoms(dicts)
    assert package.turn_starts(objects) == package.turn_starts(dicts)
    assert package.step_starts(objects) == package.step_starts(dicts)
    assert package.safe_cuts(objects) == package.safe_cuts(dicts)
    mended = package.repair(objects).report.items
    assert [(fix.code, fix.action, fix.new_id) for fix in mended] == [
        (fix.code, fix.action, fix.new_id) for fix in package.repair(dicts).report.items
    ]
    for form in ("openai", "anthropic"):
        codes = {problem.code for problem in package.validate(package.repair(objects, form).messages, form)}
        assert codes <= {"no_user_message"}
    for target in range(-1, len(dicts) + 2):
        for mode in ("steps", "role"):
            assert package.find_safe_cut(objects, target, mode) == package.find_safe_cut(dicts, target, mode)

    total = package.count_tokens(dicts)
    for budget in range(1, total + 2, max(1, total // 50)):
        tail = package.select_fresh_tail(objects, budget)
        same = package.select_fresh_tail(dicts, budget)
        check_tail(objects, tail)
        for name in ("start", "pinned", "tokens", "turns", "split_turn", "over_budget"):
            assert getattr(tail, name) == getattr(same, name), (budget, name)
    assert objects == before


# ----------------------------------------------------------------------------------------------------- openai


def function_call(call_id: str, name: str, arguments: str) -> Body:
    return {"id": call_id, "type": "function", "function": {"name": name, "arguments": arguments}}


def tool(call_id: str, content: str) -> Body:
    return {"role": "tool", "tool_call_id": call_id, "content": content}


def user(text: str) -> Body:
    return {"role": "user", "content": text}


OPENAI_MESSAGES: dict[str, Body] = {
    "content": {"role": "assistant", "content": "The build is green. ไทย 漢字 😀"},
    "refusal": {"role": "assistant", "content": None, "refusal": "I cannot help with that."},
    "function calls": {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            function_call("call_1", "read", '{"path":"a.py"}'),
            function_call("call_2", "ls", "{}"),
        ],
    },
    "custom call": {
        "role": "assistant",
        "content": "Running it.",
        "tool_calls": [
            {"id": "call_3", "type": "custom", "custom": {"name": "shell", "input": "make -j2 test"}},
            function_call("call_4", "read", '{"path":"ไทย.txt"}'),
        ],
    },
    "legacy function call": {
        "role": "assistant",
        "content": None,
        "function_call": {"name": "get_weather", "arguments": '{"city":"Bangkok"}'},
    },
    "audio": {
        "role": "assistant",
        "content": None,
        "audio": {
            "id": "audio_1",
            "data": "UklGRg==" * 50,
            "expires_at": 1_767_225_600,
            "transcript": "Hello.",
        },
    },
    "annotations": {
        "role": "assistant",
        "content": "See the docs.",
        "annotations": [
            {
                "type": "url_citation",
                "url_citation": {
                    "start_index": 0,
                    "end_index": 3,
                    "title": "Docs",
                    "url": "http://127.0.0.1/",
                },
            }
        ],
    },
    # Fields that the package does not know, as OpenAI-compatible servers send them.
    "reasoning_content of DeepSeek": {
        "role": "assistant",
        "content": "42",
        "reasoning_content": "Six times seven. " * 20,
        "tool_calls": [function_call("call_5", "check", '{"n":42}')],
    },
    "reasoning of vLLM": {"role": "assistant", "content": "42", "reasoning": "Six times seven. " * 20},
}


def openai_message(body: Body) -> Any:
    """The message object that the SDK makes of a response body."""
    openai = pytest.importorskip("openai")
    choice = {"index": 0, "finish_reason": "stop", "message": body}
    completion = {
        "id": "c",
        "object": "chat.completion",
        "created": 1,
        "model": "gpt-4o",
        "choices": [choice],
    }
    return openai.types.chat.ChatCompletion.model_validate(completion).choices[0].message


@pytest.mark.parametrize("name", OPENAI_MESSAGES)
def test_openai_message(package: ModuleType, name: str) -> None:
    message = openai_message(OPENAI_MESSAGES[name])
    dumped = message.model_dump(exclude_none=True)
    assert dumped == {key: value for key, value in OPENAI_MESSAGES[name].items() if value is not None}
    check_same(package, [message], [dumped])


def test_openai_message_made_by_hand(package: ModuleType) -> None:
    pytest.importorskip("openai")
    from openai.types.chat import (
        ChatCompletionMessage,
        ChatCompletionMessageCustomToolCall,
        ChatCompletionMessageFunctionToolCall,
    )
    from openai.types.chat.chat_completion_message_custom_tool_call import Custom
    from openai.types.chat.chat_completion_message_function_tool_call import Function

    message = ChatCompletionMessage(
        role="assistant",
        content="Reading.",
        tool_calls=[
            ChatCompletionMessageFunctionToolCall(
                id="call_1", type="function", function=Function(name="read", arguments='{"path":"a.py"}')
            ),
            ChatCompletionMessageCustomToolCall(id="call_2", type="custom", custom=Custom(name="sh", input="ls")),
        ],
    )
    check_same(
        package,
        [user("go"), message, tool("call_1", "x = 1"), tool("call_2", "a.py")],
        [user("go"), message.model_dump(exclude_none=True), tool("call_1", "x = 1"), tool("call_2", "a.py")],
    )
    assert package.atoms([user("go"), message, tool("call_2", ""), tool("call_1", "")]) == [(0, 1), (1, 4)]


def test_openai_message_made_without_validation(package: ModuleType) -> None:
    """The SDK itself builds responses with `construct`: nested objects as they come, unknown fields kept."""
    pytest.importorskip("openai")
    from openai.types.chat import ChatCompletion

    for body in OPENAI_MESSAGES.values():
        choice = {"index": 0, "finish_reason": "stop", "message": body}
        completion = {"id": "c", "created": 1, "model": "gpt-4o", "choices": [choice]}
        message = ChatCompletion.construct(None, **completion).choices[0].message
        check_same(package, [message], [message.model_dump(exclude_none=True)])


def test_openai_conversation(package: ModuleType) -> None:
    """The usual loop: the message object of each response is appended, then dicts with the results."""
    objects: list[Any] = [{"role": "system", "content": "You are a coding agent."}]
    for body in OPENAI_MESSAGES.values():
        objects += [user("Go on, please. " * 5), openai_message(body)]
        objects += [tool(call["id"], "result " * 30) for call in body.get("tool_calls", ())]
        if "function_call" in body:
            objects.append({"role": "function", "name": "get_weather", "content": "31 C"})
    dicts = [item if isinstance(item, dict) else item.model_dump(exclude_none=True) for item in objects]
    check_same(package, objects, dicts)
    assert pairing(objects).unanswered == []
    steps = package.step_starts(objects)
    assert len(steps) == len(OPENAI_MESSAGES)


# -------------------------------------------------------------------------------------------------- anthropic

RESPONSE: Body = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "model": "claude-sonnet-4-5",
    "stop_reason": "tool_use",
    "stop_sequence": None,
    "usage": {"input_tokens": 10, "output_tokens": 20},
    "content": [
        {"type": "thinking", "thinking": "The user wants the docs. " * 10, "signature": "c2ln" * 100},
        {"type": "redacted_thinking", "data": "ZGF0YQ==" * 100},
        {"type": "text", "text": "I look it up. ไทย"},
        {
            "type": "server_tool_use",
            "id": "srvtoolu_1",
            "name": "web_search",
            "input": {"query": "context window"},
        },
        {
            "type": "web_search_tool_result",
            "tool_use_id": "srvtoolu_1",
            "caller": {"type": "direct"},
            "content": [
                {
                    "type": "web_search_result",
                    "url": "http://127.0.0.1/docs",
                    "title": "Context windows",
                    "encrypted_content": "RW5jcnlwdGVk" * 100,
                    "page_age": "April 30, 2025",
                }
            ],
        },
        {"type": "tool_use", "id": "toolu_1", "name": "read", "input": {"path": "ไทย.md", "lines": [1, 200]}},
        {"type": "tool_use", "id": "toolu_2", "name": "ls", "input": {}},
    ],
}


def anthropic_response(body: Body = RESPONSE) -> Any:
    """The response object that the SDK makes of a body."""
    return pytest.importorskip("anthropic").types.Message.model_validate(body)


def results(*call_ids: str, text: str = "") -> Body:
    """A user message with tool results, and with text if the user said something as well."""
    content: list[Body] = [{"type": "tool_result", "tool_use_id": call, "content": "ok " * 50} for call in call_ids]
    return {"role": "user", "content": [*content, *([{"type": "text", "text": text}] if text else [])]}


def test_anthropic_response_as_message(package: ModuleType) -> None:
    """`{"role": "assistant", "content": response.content}`, as in the SDK's examples; `response` itself."""
    response = anthropic_response()
    blocks = [block.model_dump(exclude_none=True) for block in response.content]
    assert blocks == RESPONSE["content"]
    as_dict = {"role": "assistant", "content": blocks}
    for message in ({"role": "assistant", "content": response.content}, response):
        check_same(
            package,
            [user("look"), message, results("toolu_1", "toolu_2"), user("thanks")],
            [user("look"), as_dict, results("toolu_1", "toolu_2"), user("thanks")],
        )


@pytest.mark.parametrize("index", range(len(RESPONSE["content"])))
def test_anthropic_block(package: ModuleType, index: int) -> None:
    block = RESPONSE["content"][index]
    response = anthropic_response({**RESPONSE, "content": [block]})
    for counter in some_counters(package):
        assert counter.content(response.content) == counter.content([block])
    check_same(package, [response], [{"role": "assistant", "content": [block]}])


def test_anthropic_fields_that_were_not_sent(package: ModuleType) -> None:
    """Fields that the SDK fills with `None` are not part of a block, known or unknown, and cost nothing."""
    body = copy.deepcopy(RESPONSE)
    del body["content"][4]["caller"], body["content"][4]["content"][0]["page_age"]
    response = anthropic_response(body)
    assert [block.model_dump(exclude_none=True) for block in response.content] == body["content"]
    check_same(package, [response], [{"role": "assistant", "content": body["content"]}])


def test_anthropic_opaque_fields_are_free(package: ModuleType) -> None:
    """Signatures and encrypted content are not text that the model reads."""
    smaller = copy.deepcopy(RESPONSE)
    thinking, redacted, search = (smaller["content"][index] for index in (0, 1, 4))
    thinking["signature"], redacted["data"] = "c", "Z"
    search["content"][0]["encrypted_content"] = "R"
    for counter in some_counters(package):
        assert counter.message(anthropic_response(smaller)) == counter.message(anthropic_response())


def test_anthropic_conversation(package: ModuleType) -> None:
    response = anthropic_response()
    objects = [
        user("look it up"),
        response,
        results("toolu_1", "toolu_2"),
        {"role": "assistant", "content": response.content},
        results("toolu_1", "toolu_2", text="and fix the docs"),
        response,
        results("toolu_1", "toolu_2"),
    ]
    plain = {"role": "assistant", "content": RESPONSE["content"]}
    dicts = [plain if index in (1, 3, 5) else message for index, message in enumerate(objects)]
    check_same(package, objects, dicts)
    assert package.atoms(objects) == [(0, 1), (1, 3), (3, 5), (5, 7)]
    assert package.turn_starts(objects) == [0]
    # The provider answers its own calls: `server_tool_use` waits for nothing.
    assert package.safe_cuts(objects) == [0, 1, 3, 5, 7]

    tail = package.select_fresh_tail(objects, 1, min_turns=0)
    assert (tail.start, tail.pinned) == (5, (4,))
    assert tail.messages[0] == {"role": "user", "content": [{"type": "text", "text": "and fix the docs"}]}
    assert tail.messages[0]["content"][0] is objects[4]["content"][2]
    assert tail.messages[1] is response


# ------------------------------------------------------------------------------------------ objects like them


@dataclasses.dataclass
class Function:
    name: str
    arguments: str


@dataclasses.dataclass
class Call:
    id: str
    function: Function
    type: str = "function"


@dataclasses.dataclass
class Message:
    role: str
    content: str | None = None
    tool_calls: list[Call] | None = None
    tool_call_id: str | None = None


@dataclasses.dataclass(slots=True)
class Slotted:
    role: str
    content: str


def without_none(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_none(item) for key, item in value.items() if item is not None}
    return [without_none(item) for item in value] if isinstance(value, list) else value


def test_dataclasses(package: ModuleType) -> None:
    objects = [
        Message("user", "Read a.py"),
        Message("assistant", None, [Call("call_1", Function("read", '{"path":"a.py"}'))]),
        Message("tool", "x = 1\n" * 20, tool_call_id="call_1"),
        Message("assistant", "It sets x."),
        Message("user", "Thanks"),
    ]
    check_same(package, objects, [without_none(dataclasses.asdict(message)) for message in objects])


def test_simple_namespaces(package: ModuleType) -> None:
    call = {"id": "call_1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a.py"}'}}
    calling = SimpleNamespace(
        role="assistant",
        content=[SimpleNamespace(type="text", text="Reading.")],
        tool_calls=[SimpleNamespace(**{**call, "function": SimpleNamespace(name="read", arguments='{"path":"a.py"}')})],
    )
    objects = [user("go"), calling, SimpleNamespace(**tool("call_1", "x = 1")), SimpleNamespace(**user("ok"))]
    as_dict = {"role": "assistant", "content": [{"type": "text", "text": "Reading."}], "tool_calls": [call]}
    check_same(package, objects, [user("go"), as_dict, tool("call_1", "x = 1"), user("ok")])


def test_an_object_without_attributes_is_no_message(package: ModuleType) -> None:
    for message in (Slotted("user", "hi"), 5, object()):
        with pytest.raises(MessageTypeError) as caught:
            package.count_tokens([message])
        assert caught.value.path == "messages[0]"
