"""Hypothesis strategies for texts, messages, conversations and counters.

Conversations are built from pieces that are valid (turns, steps, parallel calls in any order, every form) and then
broken by edits: messages lost, repeated, moved. Ids come from a small alphabet, so that they collide often.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

from hypothesis import strategies as st
from hypothesis.strategies import DrawFn, SearchStrategy

from ctxfast import EstimatorConfig, TokenCounter, model_info, reference

Message = dict[str, Any]
Pair = tuple[TokenCounter, reference.Counter]
T = TypeVar("T")


class Record:
    """An object with attributes, as SDKs have them: fields in `__dict__`, pydantic's extra fields beside it."""

    __slots__ = ("__dict__", "__pydantic_extra__")

    def __init__(self, fields: Message, extra: Message | None) -> None:
        self.__dict__.update(fields)
        self.__pydantic_extra__ = extra

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Record):
            return NotImplemented
        return (self.__dict__, self.__pydantic_extra__) == (other.__dict__, other.__pydantic_extra__)

    __hash__ = None  # type: ignore[assignment]

    def __repr__(self) -> str:
        return f"Record({self.__dict__!r}, {self.__pydantic_extra__!r})"


class Missing:
    """The value of a field that is not there."""

    def __repr__(self) -> str:
        return "MISSING"


MISSING = Missing()


def present(**fields: Any) -> Message:
    """A dict of the fields that are there; a trailing underscore is for Python's own words."""
    return {key.rstrip("_"): value for key, value in fields.items() if value is not MISSING}


# --------------------------------------------------------------------------------------------------------- texts

FRAGMENTS = (
    *("", "a", "word ", "0", '"', "\\", "\n", "\t", "\0", "\x1f", "\x7f", "\x1c", "<b>&amp;</b>", "{}"),
    *("é", "ÿ", "\x80", "\xa0"),  # one byte, not ASCII
    *(
        "ไทย",
        "สวัสดี ",
        "漢字",
        "Ā",
        "\u0dff\u0e00\u0e7f\u0e80",
        "\u2028\u2029",
        "\ud83d",
        "\ude00",
        "\udfff",
        "\uffff",
    ),
    *("😀", "\U00010000", "\U0010ffff", "👩‍👩‍👧"),
)
LENGTHS = (2, 3, 7, 8, 9, 15, 16, 17, 31, 32, 33, 63, 64, 65, 127, 128, 129, 255, 256, 257, 1000, 4099)

short_texts = st.sampled_from(FRAGMENTS)
any_character = st.characters(exclude_categories=())  # lone surrogates too
long_texts = st.builds(lambda unit, count, end: unit * count + end, short_texts, st.sampled_from(LENGTHS), short_texts)
texts = st.one_of(
    short_texts,
    st.lists(short_texts, max_size=6).map("".join),
    st.text(any_character, max_size=12),
    long_texts,
)
words = st.sampled_from(["", "hi", "a longer sentence of words", "ไทย", "😀", "x" * 40, "\ud83d"])

# ----------------------------------------------------------------------------------------------- ids, JSON, blocks

good_ids = st.sampled_from(["a", "b", "c"])
ids: SearchStrategy[Any] = st.one_of(
    good_ids,
    st.sampled_from(["call_1", "é", "ไ", "😀", "\ud83d", "", " ", "\x1c\u2003", "\x85\xa0", "\u200b", None, MISSING]),
)

numbers: SearchStrategy[Any] = st.one_of(
    st.integers(-1000, 1000),
    st.integers(),
    st.integers(10**15, 10**25),
    st.sampled_from([2**53 + 1, 2**63 - 1, 2**63, -(2**63), -(2**63) - 1, 2**64, 10**40, -(10**309), 10**400]),
    st.floats(),
    st.integers(-330, 310).map(lambda exponent: float(f"1.5e{exponent}")),
    st.sampled_from([0.0, -0.0, 1e-7, 1e-6, 9.99e-7, 1e-4, 9.9e-5, 1e15, 1e16, 1e17, 1e20, 1e21, 123456.789, 5e-324]),
)
keys = st.sampled_from(
    ["path", "query", "text", "type", "signature", "cache_control", "ไทย", "é", "<k>", "😀", "\ud83d", ""]
)
json_values: SearchStrategy[Any] = st.recursive(
    st.one_of(st.none(), st.booleans(), numbers, texts),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3),
        st.lists(inner, max_size=3).map(tuple),
        st.dictionaries(keys, inner, max_size=3),
    ),
    max_leaves=6,
)
arguments: SearchStrategy[Any] = st.one_of(
    st.sampled_from(["{}", '{"path": "a.py"}', '{"คำ": "ไทย"}', "", None, MISSING]),
    st.dictionaries(keys, json_values, max_size=3),
    texts,
    json_values,
)
no_text = st.sampled_from([None, MISSING])

MEDIA_TYPES = (
    "image",
    "image_url",
    "input_image",
    "audio",
    "input_audio",
    "video",
    "video_url",
    "input_video",
)
FILE_TYPES = ("file", "input_file", "container_upload")
UNKNOWN_TYPES = (
    "search_result",
    "web_search_tool_result",
    "compaction",
    "ไทย",
    "Text",
    "tool_use ",
    "",
    5,
    None,
    MISSING,
)


def text_blocks(texts: SearchStrategy[Any]) -> SearchStrategy[Message]:
    """Blocks that are nothing but text."""
    some_text = st.one_of(texts, no_text)
    return st.one_of(
        st.builds(present, type_=st.sampled_from(["text", "input_text", "output_text"]), text=some_text),
        st.builds(present, type_=st.just("text"), text=some_text, cache_control=st.just({"type": "ephemeral"})),
        st.builds(present, type_=st.just("refusal"), refusal=some_text),
    )


thinking_blocks = st.one_of(
    st.builds(present, type_=st.just("thinking"), thinking=st.one_of(texts, no_text), signature=st.just("c2ln" * 40)),
    st.just({"type": "redacted_thinking", "data": "ZGF0YQ==" * 30}),
)
media_blocks = st.builds(
    present,
    type_=st.sampled_from(MEDIA_TYPES + FILE_TYPES),
    image_url=st.sampled_from([MISSING, {"url": "data:image/png;base64,AAAA"}]),
    source=st.sampled_from([MISSING, {"type": "base64", "media_type": "image/png", "data": "AAAA"}]),
)
unknown_blocks = st.builds(
    lambda kind, fields: fields if kind is MISSING else {**fields, "type": kind},
    st.sampled_from(UNKNOWN_TYPES),
    st.dictionaries(
        st.sampled_from(
            ["signature", "thought_signature", "encrypted_content", "encrypted_index", "data", "คำ", "text"]
        ),
        json_values,
        max_size=3,
    ),
)


def call_blocks(ids: SearchStrategy[Any], types: tuple[str, ...] = ("tool_use",)) -> SearchStrategy[Message]:
    """Blocks that call a tool."""
    return st.builds(
        present,
        type_=st.sampled_from(types),
        id=ids,
        name=st.one_of(st.sampled_from(["read", "ค้นหา", "é"]), no_text),
        input=arguments,
    )


def result_blocks(ids: SearchStrategy[Any], content: SearchStrategy[Any]) -> SearchStrategy[Message]:
    """Blocks that are the result of a call."""
    return st.builds(
        present,
        type_=st.just("tool_result"),
        tool_use_id=ids,
        content=content,
        is_error=st.sampled_from([MISSING, True]),
    )


def document_blocks(content: SearchStrategy[Any]) -> SearchStrategy[Message]:
    """Documents of every kind of source."""
    sources: SearchStrategy[Any] = st.one_of(
        no_text,
        st.builds(present, type_=st.just("text"), data=st.one_of(texts, no_text)),
        st.builds(present, type_=st.just("content"), content=content),
        st.builds(present, type_=st.sampled_from(["base64", "url", "ไทย", 5, MISSING]), data=st.just("JVBERi0=")),
    )
    titles = st.one_of(texts, no_text)
    return st.builds(present, type_=st.just("document"), source=sources, title=titles, context=titles)


def part_lists(inner: SearchStrategy[Any]) -> SearchStrategy[list[Any]]:
    """Lists of parts, of which some hold content themselves."""
    return st.lists(
        st.one_of(
            text_blocks(texts),
            texts,
            thinking_blocks,
            media_blocks,
            unknown_blocks,
            call_blocks(ids, ("tool_use", "server_tool_use", "mcp_tool_use")),
            result_blocks(ids, inner),
            document_blocks(inner),
        ),
        max_size=4,
    )


plain_contents: SearchStrategy[Any] = st.one_of(texts, st.none(), st.just([]))
contents: SearchStrategy[Any] = st.one_of(
    plain_contents,
    part_lists(st.one_of(plain_contents, st.just(MISSING), part_lists(plain_contents))),
    part_lists(plain_contents).map(tuple),
)

# -------------------------------------------------------------------------------------------------------- messages

ROLES = ("user", "assistant", "tool", "system", "developer", "function", "critic", "ไทย", "")


def called_functions(arguments: SearchStrategy[Any]) -> SearchStrategy[Message]:
    """A name and arguments, under each of the keys that they are written with."""
    names = st.one_of(st.sampled_from(["read", "bash", "ค้นหา"]), no_text)
    return st.builds(
        lambda name, key, value: present(**{"name": name, key: value}),
        names,
        st.sampled_from(["arguments", "arguments", "input", "args"]),
        arguments,
    )


def tool_calls(ids: SearchStrategy[Any], arguments: SearchStrategy[Any]) -> SearchStrategy[Message]:
    """Calls in OpenAI's form: of a function, of a custom tool, or flat."""
    functions = called_functions(arguments)
    types = st.sampled_from(["function", "custom", None, MISSING])
    return st.one_of(
        st.builds(present, id=ids, type_=types, function=functions),
        st.builds(present, id=ids, type_=types, function=st.sampled_from([None, MISSING]), custom=functions),
        st.builds(lambda call_id, function: present(id=call_id, **function), ids, functions),
    )


mostly_missing = st.sampled_from([MISSING, MISSING, MISSING, None])
system_parts = st.lists(st.builds(present, type_=st.just("text"), text=st.one_of(texts, no_text)), max_size=3)
messages: SearchStrategy[Message] = st.builds(
    lambda fields, other: {**fields, **other},
    st.builds(
        present,
        role=st.sampled_from(ROLES),
        content=st.one_of(contents, st.just(MISSING)),
        tool_calls=st.one_of(mostly_missing, st.lists(tool_calls(ids, arguments), max_size=3)),
        function_call=st.one_of(mostly_missing, called_functions(arguments)),
        tool_call_id=st.one_of(mostly_missing, ids),
        reasoning_content=st.one_of(mostly_missing, texts),
        reasoning=st.one_of(mostly_missing, texts, st.just({"effort": 5})),
        refusal=st.one_of(mostly_missing, texts),
        audio=st.one_of(mostly_missing, st.just({"id": "audio_1"})),
        media=st.one_of(mostly_missing, st.lists(st.just("media://1"), max_size=3)),
        system_parts=st.one_of(mostly_missing, system_parts),
    ),
    st.dictionaries(st.sampled_from(["name", "timestamp", "ไทย", "😀", "\ud83d", "rôle"]), json_values, max_size=1),
)
"""Any message that can be read, whatever it may mean."""


def as_object(value: Any, extra: tuple[str, ...] = ()) -> Any:
    """The value with its dicts as objects, down to content blocks; fields in `extra` as pydantic's extra ones."""
    if isinstance(value, list):
        return [as_object(item, extra) for item in value]
    if isinstance(value, dict) and value:  # an object without fields is refused
        fields = {
            key: as_object(item, extra) if key in ("content", "tool_calls") else item for key, item in value.items()
        }
        own = {key: item for key, item in fields.items() if key not in extra}
        return Record(own, {key: fields[key] for key in extra if key in fields} or None)
    return value


def perhaps_objects(values: SearchStrategy[Any]) -> SearchStrategy[Any]:
    """Dicts, or now and then objects instead."""
    return st.one_of(
        values,
        values,
        st.builds(
            as_object,
            values,
            st.sampled_from([(), ("reasoning_content", "text"), ("content", "id"), ("role",)]),
        ),
    )


# --------------------------------------------------------------------------------------------------- conversations


def user_message(form: str, text: str) -> Message:
    """What a person says."""
    return {"role": "user", "content": text if form == "openai" else [{"type": "text", "text": text}]}


def calling_message(form: str, call_ids: list[Any], text: str) -> Message:
    """A model's response with calls."""
    if form == "anthropic":
        calls = [present(type_="tool_use", id=call_id, name="read", input={"path": text}) for call_id in call_ids]
        return {"role": "assistant", "content": [{"type": "text", "text": text}, *calls]}
    if form == "legacy":
        return {"role": "assistant", "content": None, "function_call": {"name": "read", "arguments": text}}
    function = {"name": "read", "arguments": text}
    if form == "custom":
        calls = [present(id=call_id, type_="custom", custom={"name": "read", "input": text}) for call_id in call_ids]
    elif form == "flat":
        calls = [present(id=call_id, name="read", args={"path": text}) for call_id in call_ids]
    else:
        calls = [present(id=call_id, type_="function", function=function) for call_id in call_ids]
    content = [{"type": "tool_use", "id": "a", "name": "read", "input": {}}] if form == "both" else None
    return {"role": "assistant", "content": content, "tool_calls": calls}


def result_messages(form: str, call_ids: list[Any], text: str, user_text: str | None) -> list[Message]:
    """Results in the order of the ids; `user_text` is what a user says in the same message or right after."""
    if form == "anthropic":
        blocks = [present(type_="tool_result", tool_use_id=call_id, content=text) for call_id in call_ids]
        if user_text is not None:
            blocks.append({"type": "text", "text": user_text})
        return [{"role": "user", "content": blocks}]
    if form == "one by one":
        return [
            {
                "role": "user",
                "content": [
                    present(type_="tool_result", tool_use_id=call_id, content=[{"type": "text", "text": text}])
                ],
            }
            for call_id in call_ids
        ]
    role = "function" if form == "legacy" else "tool"
    results = [present(role=role, tool_call_id=call_id, content=text) for call_id in call_ids]
    return results if user_text is None else [*results, {"role": "user", "content": user_text}]


CALL_FORMS = ("openai", "openai", "anthropic", "anthropic", "legacy", "custom", "flat", "both")
RESULT_FORMS = ("openai", "openai", "anthropic", "anthropic", "one by one", "legacy")


@st.composite
def steps(draw: DrawFn, ids: SearchStrategy[Any] = good_ids) -> list[Message]:
    """Responses with parallel calls, and their results in any order, perhaps with a user message in between."""
    groups = draw(st.lists(st.lists(ids, min_size=1, max_size=3), min_size=1, max_size=2))
    result = [calling_message(draw(st.sampled_from(CALL_FORMS)), group, draw(words)) for group in groups]
    answered = draw(st.permutations([call_id for group in groups for call_id in group]))
    if draw(st.sampled_from([False, False, False, True])):
        result.append(user_message("openai", "wait"))
    middle = draw(st.integers(0, len(answered)))
    says = draw(st.sampled_from([None, None, None, "and this"]))
    for some in (answered[:middle], answered[middle:]):
        if some:
            result += result_messages(draw(st.sampled_from(RESULT_FORMS)), some, draw(words), says)
    return result


def alone(message: Message) -> list[Message]:
    return [message]


user_messages = st.builds(user_message, st.sampled_from(["openai", "anthropic"]), words)
assistant_messages = st.builds(
    lambda form, text: {**user_message(form, text), "role": "assistant"},
    st.sampled_from(["openai", "anthropic"]),
    words,
)
system_messages = st.builds(
    lambda role, text: {"role": role, "content": text},
    st.sampled_from(["system", "system", "developer"]),
    words,
)
odd_messages: SearchStrategy[Message] = st.one_of(
    st.builds(lambda text: {"role": "critic", "content": text}, words),
    st.builds(lambda text, call_id: present(role="tool", content=text, tool_call_id=call_id), words, ids),  # orphans
    st.builds(
        lambda call_id, says: result_messages("anthropic", [call_id], "x", says)[0],
        ids,
        st.sampled_from([None, "y"]),
    ),
    st.builds(lambda call_id: calling_message("openai", [call_id], "never answered"), ids),
    st.just({"role": "user", "content": []}),
    st.just({"role": "user", "content": None}),
    st.just({"role": "user"}),
    st.just({"role": "assistant"}),
)


def pieces(ids: SearchStrategy[Any], *, odd: bool) -> SearchStrategy[list[Message]]:
    """Pieces of conversations, which can follow one another in any order."""
    kinds = [
        steps(ids),
        steps(ids),
        user_messages.map(alone),
        user_messages.map(alone),
        assistant_messages.map(alone),
    ]
    if odd:
        kinds += [system_messages.map(alone), odd_messages.map(alone)]
    return st.one_of(kinds)


def joined(front: list[Message], parts: list[list[Message]]) -> list[Message]:
    return [*front, *(message for part in parts for message in part)]


valid_conversations: SearchStrategy[list[Message]] = st.builds(
    joined,
    st.lists(system_messages, max_size=2),
    st.lists(pieces(good_ids, odd=False), max_size=6),
)
"""What agents really send: every call with its results, ids that repeat."""

Edit = tuple[str, int, int]
edits: SearchStrategy[list[Edit]] = st.lists(
    st.tuples(st.sampled_from(["lose", "repeat", "move", "end", "begin"]), st.integers(0, 30), st.integers(0, 30)),
    max_size=3,
)


def edited(conversation: list[Message], edits: list[Edit]) -> list[Message]:
    """A conversation that something has happened to: messages are lost, repeated, moved, cut off at an end."""
    result = list(conversation)
    for edit, one, two in edits:
        if not result:
            break
        place, target = one % len(result), two % len(result)
        if edit == "lose":
            del result[place]
        elif edit == "repeat":
            result.insert(target, result[place])
        elif edit == "move":
            result.insert(target, result.pop(place))
        elif edit == "end":
            del result[place + 1 :]
        else:
            del result[:place]
    return result


broken_conversations: SearchStrategy[list[Message]] = st.builds(
    edited,
    st.builds(joined, st.lists(system_messages, max_size=2), st.lists(pieces(ids, odd=True), max_size=6)),
    edits,
)
"""What is found in logs: orphans, duplicates, late and missing results, blank and missing ids."""

WORDS = ("U", "A", "Aa", "Aab", "Aaa", "Ab", "Ta", "Tb", "T", "Rab", "Ra", "Ma", "S", "O")


def from_word(word: str) -> Message:
    """A message in short: `Aab` calls a and b, `Ta` is a result, `Rab` holds two, `Ma` a result and text of a user."""
    kind, call_ids = word[0], list(word[1:])
    if kind == "A":
        return calling_message("openai", call_ids, word) if call_ids else {"role": "assistant", "content": word}
    if kind == "T":
        return present(role="tool", tool_call_id=word[1:] or MISSING, content=word)
    if kind in "RM":
        return result_messages("anthropic", call_ids, word, word if kind == "M" else None)[0]
    return {"role": {"U": "user", "S": "system", "O": "critic"}[kind], "content": word}


terse_conversations: SearchStrategy[list[Message]] = st.lists(st.sampled_from(WORDS).map(from_word), max_size=16)
"""No structure at all: every way in which two ids can be opened, closed and crossed."""

conversations: SearchStrategy[list[Message]] = st.one_of(
    valid_conversations, broken_conversations, terse_conversations, st.lists(messages, max_size=4)
)

# ------------------------------------------------------------------------------------ tools, requests and counters

tools: SearchStrategy[list[Message]] = st.lists(
    st.one_of(
        st.builds(
            present,
            type_=st.just("function"),
            function=st.one_of(
                st.builds(
                    present,
                    name=st.one_of(words, no_text),
                    description=st.one_of(texts, no_text),
                    parameters=arguments,
                    strict=st.booleans(),
                ),
            ),
        ),
        st.builds(present, name=words, description=texts, input_schema=arguments),
        st.builds(
            present,
            type_=st.just("custom"),
            function=st.sampled_from([None, MISSING]),
            custom=st.builds(present, name=words, description=texts, format=arguments),
        ),
        st.dictionaries(keys, json_values, max_size=3),  # a provider's own tool, without a name
    ),
    max_size=3,
)
requests: SearchStrategy[Message] = st.builds(
    present,
    messages=conversations,
    system=st.one_of(no_text, contents),
    tools=st.one_of(no_text, tools),
    model=st.just("some-model"),
)

rates = st.one_of(
    st.sampled_from([0.01, 0.3, 1, 1.0, 2.5, 3, 3.3, 4.0, 1 / 3, 7.7, 1000.0, 1e12]),
    st.floats(0.05, 100.0),
)
configs: SearchStrategy[EstimatorConfig] = st.builds(
    EstimatorConfig,
    chars_per_token=rates,
    rounding=st.sampled_from(["up", "down"]),
    message_overhead=st.sampled_from([0, 1, 12, 1_000_000]),
    media_tokens=st.sampled_from([0, 256, 1_000_000]),
    unit=st.sampled_from(["chars", "bytes", "mixed"]),
    tool_overhead=st.sampled_from([0, 20, 999]),
    code_per_token=st.one_of(st.none(), rates),
    thai_per_token=st.one_of(st.none(), rates),
)


def words_of(text: str) -> int:
    """A counting function whose counts do not follow the length."""
    return text.count(" ") + text.count("a") + 1


def same(function: Callable[[str], int], *options: int) -> Pair:
    """A counter and its twin, both from one function."""
    named = dict(zip(("message_overhead", "media_tokens"), options, strict=False))
    return TokenCounter.from_callable(function, **named), reference.CallableCounter(function, **named)


additive_counters: SearchStrategy[Pair] = st.one_of(
    st.builds(lambda: (TokenCounter.default(), reference.default_counter())),
    st.sampled_from(["4.0", "2.5"]).map(
        lambda version: (TokenCounter.picoclaw(version), reference.picoclaw(version))  # type: ignore[arg-type]
    ),
    configs.map(lambda config: (TokenCounter.flat(config), reference.FlatCounter(config))),
    st.sampled_from(["o200k", "claude_v47"]).map(
        lambda family: (TokenCounter.estimator(family), reference.EstimatorCounter(family))  # type: ignore[arg-type]
    ),
    st.sampled_from([same(len), same(len, 0, 0), same(words_of), same(words_of, 7), same(len, 1, 10_000)]),
)
"""Counters whose counts of single messages and outputs are the summands of their totals."""

counters: SearchStrategy[Pair] = st.one_of(
    additive_counters,
    st.builds(
        lambda family, safe: (TokenCounter.estimator(family, safety=safe), reference.EstimatorCounter(family, safe)),
        st.sampled_from(["o200k", "claude_v47"]),
        st.sampled_from([0.5, 0.95, 0.99]),
    ),
    st.builds(
        lambda name, safety, exact: (
            TokenCounter.for_model(name, safety=safety, exact=exact),
            reference.for_model(name, safety, exact=exact),
        ),
        st.sampled_from(["gpt-5", "claude-sonnet-4-5", "gemini-2.5-pro", model_info("somebody/something")]),
        st.sampled_from([None, 0.5, 0.95]),
        st.booleans(),
    ),
)
"""A counter of the package, and the one of the reference that counts alike."""
