"""What a provider says that a request took: `Usage`, the records of every provider in the same terms."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from typing import NamedTuple

from ctxfast.errors import UsageError

__all__ = ["Usage"]


@dataclass(frozen=True)
class Usage:
    """The tokens of one request and its answer. Every number is a count of tokens; `None` is "not reported".

    Providers differ in what their numbers include: OpenAI and Gemini count cached tokens in the prompt's, Anthropic and
    Bedrock beside them; Gemini counts reasoning beside the output, others in it. Here everything is included:

    >>> usage = Usage.from_provider({"input_tokens": 12, "cache_read_input_tokens": 150_000, "output_tokens": 640})
    >>> usage.prompt_tokens, usage.output_tokens, usage.total_tokens
    (150012, 640, 150652)
    """

    prompt_tokens: int | None = None
    """What the model has read: all of the prompt, from the cache or not."""
    output_tokens: int | None = None
    """What the model has written, reasoning included."""
    cache_read_tokens: int = 0
    """Those of the prompt that came from the cache."""
    cache_write_tokens: int = 0
    """Those of the prompt that went to the cache."""
    reasoning_tokens: int = 0
    """Those of the output that are reasoning."""
    total_tokens: int | None = None
    """What stands in the context window after the answer: prompt and output; as reported, if only that is known."""

    @classmethod
    def from_provider(cls, record: object) -> Usage | None:
        """Reads a usage record, or a response that has one: dicts and objects of the providers' libraries.

        It knows the records of OpenAI (Chat Completions, Responses) and of all that speak its protocol, of Anthropic,
        Bedrock, Gemini, Ollama, Cohere, LiteLLM, LangChain, pydantic-ai and the AI SDK, in snake_case and camelCase,
        by their fields. `None` if nothing was reported: no record, an empty one, or zeros, as for aborted streams.

        A number that is counted twice or not at all is found by arithmetic: what is said to lie inside a count cannot
        be larger than that, and where there is a total, the reading that adds up to it is taken. After a compaction
        by the provider (`iterations`) the last request to the model counts, which is what stands in the window.

        Raises `UsageError` for a record without any known field and for counts that are none, saying where.
        """
        return _read(record, "usage")


class _Shape(NamedTuple):
    """Names of the fields of a kind of record, in snake_case; a dot leads into a record inside."""

    prompt: str
    output: str
    total: str
    read: tuple[str, ...] = ()
    """Tokens read from the cache: the first field that is there counts."""
    write: tuple[str, ...] = ()
    reasoning: tuple[str, ...] = ()
    more_prompt: str | None = None
    """Always beside the prompt's count."""
    cache_beside: bool = False
    """Cached tokens are beside the prompt's count, not in it."""
    reasoning_beside: bool = False

    @property
    def cached(self) -> tuple[str, ...]:
        return self.read + self.write


# Sources: the types of openai 3.57 and anthropic 2.14, the code of gemini-cli and Ollama; the other names are from the
# providers' documentation, not tried against a server. A record has the first shape of which it has a count.
_SHAPES = (
    _Shape(  # OpenAI's Chat Completions; DeepSeek (`prompt_cache_hit_tokens`), Moonshot (`cached_tokens`), LiteLLM
        prompt="prompt_tokens",
        output="completion_tokens",
        total="total_tokens",
        read=(
            "prompt_tokens_details.cached_tokens",
            "prompt_cache_hit_tokens",
            "cached_tokens",
            "cache_read_input_tokens",
        ),
        write=("prompt_tokens_details.cache_write_tokens", "cache_creation_input_tokens"),
        reasoning=("completion_tokens_details.reasoning_tokens",),
    ),
    _Shape(  # Gemini
        prompt="prompt_token_count",
        output="candidates_token_count",
        total="total_token_count",
        read=("cached_content_token_count",),
        reasoning=("thoughts_token_count",),
        more_prompt="tool_use_prompt_token_count",
        reasoning_beside=True,
    ),
    _Shape(prompt="prompt_eval_count", output="eval_count", total="total_tokens"),  # Ollama
    _Shape(  # OpenAI's Responses, LangChain (`input_token_details`), Codex, the AI SDK, pydantic-ai
        prompt="input_tokens",
        output="output_tokens",
        total="total_tokens",
        read=(
            "input_tokens_details.cached_tokens",
            "input_token_details.cache_read",
            "cached_input_tokens",
            "cache_read_tokens",
        ),
        write=(
            "input_tokens_details.cache_write_tokens",
            "input_token_details.cache_creation",
            "cache_write_tokens",
        ),
        reasoning=(
            "output_tokens_details.reasoning_tokens",
            "output_tokens_details.thinking_tokens",
            "output_token_details.reasoning",
            "reasoning_output_tokens",
            "reasoning_tokens",
        ),
    ),
)
# The same with cached tokens under these names: Anthropic and Bedrock (`cacheWriteInputTokens`).
_ANTHROPIC = _SHAPES[-1]._replace(
    read=("cache_read_input_tokens",),
    write=("cache_creation_input_tokens", "cache_write_input_tokens"),
    cache_beside=True,
)
_INSIDE = ("usage", "usage_metadata", "tokens")  # of a response; `tokens`: of Cohere's record, beside `billed_units`
_DEEPEST = 4  # levels; a response and the record in it are two


def _read(record: object, path: str) -> Usage | None:
    if record is None or (isinstance(record, Mapping) and not record):
        return None
    if isinstance(record, (str, bytes, int, float, Sequence)) or path.count(".") > _DEEPEST:
        raise UsageError("a usage record or a response (a `dict` or an object)", type(record).__name__, path)
    iterations, name = _field(record, "iterations")
    if isinstance(iterations, Sequence):
        for index in reversed(range(len(iterations))):
            if _field(iterations[index], "type")[0] == "message":
                return _read(iterations[index], f"{path}.{name}[{index}]")
    shape = _shape(record, path)
    if shape is not None:
        return _add_up(record, shape, path)
    for inside in _INSIDE:
        value, name = _field(record, inside)
        if name:
            return _read(value, f"{path}.{name}")
    names = sorted(map(str, record if isinstance(record, Mapping) else getattr(record, "__dict__", ())))
    known = {*_INSIDE, *(shape.prompt for shape in _SHAPES)}
    if not known.union(map(_camel, known)).isdisjoint(names):
        return None  # there, and null
    expected = "a field of a usage record (such as `prompt_tokens`, `input_tokens` or `promptTokenCount`)"
    raise UsageError(expected, f"{type(record).__name__} with {', '.join(names) or 'none'}", path)


def _shape(record: object, path: str) -> _Shape | None:
    for decisive in (("prompt", "output"), ("total",)):
        for shape in _SHAPES:
            if any(_field(record, getattr(shape, name))[1] for name in decisive):
                anthropic = shape.prompt == _ANTHROPIC.prompt and _first(record, _ANTHROPIC.cached, path)
                return _ANTHROPIC if anthropic else shape
    return None


def _add_up(record: object, shape: _Shape, path: str) -> Usage | None:
    prompt = _count(record, shape.prompt, path) + (_count(record, shape.more_prompt, path) if shape.more_prompt else 0)
    output = _count(record, shape.output, path)
    reported = _count(record, shape.total, path)
    read, write = _first(record, shape.read, path), _first(record, shape.write, path)
    reasoning = _first(record, shape.reasoning, path)

    # Are cached tokens beside the prompt's count and reasoning beside the output's? As documented, unless what is said
    # to lie inside is larger than the count, or the total shows that it is otherwise.
    cache = (shape.cache_beside, not shape.cache_beside) if read + write <= prompt else (True,)
    thought = (shape.reasoning_beside, not shape.reasoning_beside) if reasoning <= output else (True,)
    readings = [(prompt + (read + write) * c, output + reasoning * t) for c in cache for t in thought]
    all_prompt, all_output = next((both for both in readings if sum(both) == reported), readings[0])

    if not (all_prompt or all_output or reported):
        return None
    # No prompt is empty: 0 means that it was not reported, as in the last events of a stream. An answer can be.
    prompt_tokens = all_prompt or None
    output_tokens = all_output if all_output or (all_prompt and _field(record, shape.output)[1]) else None
    known = prompt_tokens is not None and output_tokens is not None
    return Usage(
        prompt_tokens=prompt_tokens,
        output_tokens=output_tokens,
        cache_read_tokens=read,
        cache_write_tokens=write,
        reasoning_tokens=reasoning,
        total_tokens=all_prompt + all_output if known else reported or None,
    )


def _first(record: object, names: tuple[str, ...], path: str) -> int:
    """The first of these counts that is more than 0."""
    return next((count for count in (_count(record, name, path) for name in names) if count), 0)


def _count(record: object, name: str, path: str) -> int:
    """The tokens in this field; 0 if it is null or not there."""
    value, spelling = _field(record, name)
    if value is None:
        return 0
    expected = "a number of tokens, 0 or more"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        raise UsageError(expected, type(value).__name__, f"{path}.{spelling}")
    if value < 0 or not (isinstance(value, int) or value.is_integer()):
        raise UsageError(expected, repr(value), f"{path}.{spelling}")
    return int(value)


def _field(record: object, name: str) -> tuple[object, str]:
    """The value of a field and the name by which it is there; `(None, "")` if it is null or not there."""
    for spelling in (name, _camel(name)):
        value: object = record
        for part in spelling.split("."):
            value = value.get(part) if isinstance(value, Mapping) else getattr(value, part, None)
            if value is None:
                break
        else:
            return value, spelling
    return None, ""


@cache
def _camel(name: str) -> str:
    return re.sub("_([a-z])", lambda match: match[1].upper(), name)
