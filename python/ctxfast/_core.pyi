# Generated from the Rust doc comments by tools/stubs.py (`make stubs`): do not edit.

"""
Counting, cutting and tail selection for lists of LLM messages. The public names are in `ctxfast`.
"""

from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from os import PathLike
from typing import Any, Final, Literal, SupportsIndex, final

from ctxfast.counting import EstimatorConfig
from ctxfast.models import ImageRule, ModelInfo
from ctxfast.policy import PrunePolicy, SupportsSave

__all__ = [
    "OPTIMISED",
    "VERSION",
    "CachePrices",
    "Edit",
    "ErrorInfo",
    "Fix",
    "FreshTail",
    "Problem",
    "Pruned",
    "RepairReport",
    "Repaired",
    "Report",
    "TextLedger",
    "TokenCounter",
    "TokenLedger",
    "_estimator_table",
    "_fit",
    "_image_tokens",
    "_keep_last",
    "_restore_counter",
    "_restore_error_info",
    "_restore_ledger",
    "_transcribe",
    "atoms",
    "classify_error",
    "count_tokens",
    "cut_text",
    "find_safe_cut",
    "fresh_tail_budget",
    "join_ascii",
    "kept_ends",
    "output_hash",
    "output_json",
    "output_text",
    "prune_tool_outputs",
    "remove",
    "repair",
    "safe_cuts",
    "select_fresh_tail",
    "step_starts",
    "text_size",
    "tool_kinds",
    "truncation_marker",
    "turn_starts",
    "validate",
    "write_output",
]

OPTIMISED: Final[bool]
"""
Whether the module was built with optimisation: figures from a build without are worth nothing.
"""

VERSION: Final[str]
"""
Version of the package.
"""

@final
class CachePrices:
    """
    What tokens cost, as shares of the price of an input token that is not cached. Frozen, hashable, picklable.

    `read` and `write` are the prices of reading a token from the provider's cache and of writing it there; the defaults
    are Anthropic's (OpenAI: `CachePrices(read=0.1, write=1.0)`). `horizon` is how many requests are still to come; `None`
    takes 0.2 for each step so far, 3 at least and 40 at most. `cold` says that the cache has expired, so that everything
    is written anew in any case: then any saving is taken. Raises `TypeError` or `ValueError` for what is no price.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __getnewargs__(self, /) -> tuple[float, float, float | None, bool]: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __new__(
        cls, /, read: float = ..., write: float = ..., horizon: float | None = None, cold: bool = False
    ) -> CachePrices: ...
    def __repr__(self, /) -> str: ...
    @property
    def cold(self, /) -> bool:
        """
        Whether the cache has expired.
        """
    @property
    def horizon(self, /) -> float | None:
        """
        Requests to come; `None`: a share of the steps so far.
        """
    @property
    def read(self, /) -> float:
        """
        Price of reading a token from the cache.
        """
    @property
    def write(self, /) -> float:
        """
        Price of writing a token into the cache.
        """

@final
class Edit:
    """
    A tool output that has been replaced. Frozen.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]: ...
    def __repr__(self, /) -> str: ...
    @property
    def after(self, /) -> int:
        """
        Tokens of the stub.
        """
    def as_dict(self, /) -> dict[str, Any]:
        """
        The same as plain data, fit for JSON.
        """
    @property
    def before(self, /) -> int:
        """
        Tokens of the output.
        """
    @property
    def call_id(self, /) -> str:
        """
        Id of the call that it answers; empty if it has none.
        """
    @property
    def characters(self, /) -> int:
        """
        Characters of the output.
        """
    @staticmethod
    def from_dict(data: dict[str, Any]) -> Edit:
        """
        That of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
        """
    @property
    def index(self, /) -> int:
        """
        Index of its message.
        """
    @property
    def kind(self, /) -> Literal["read", "edit", "command", "search", "list", "web", "agent", "other"]:
        """
        What kind of tool it is: `read`, `edit`, `command`, `search`, `list`, `web`, `agent`, `other`.
        """
    @property
    def new(self, /) -> bool:
        """
        Whether it was replaced by this call, and not by an earlier one.
        """
    @property
    def place(self, /) -> int:
        """
        Which of the message's tool results it is, from 0.
        """
    @property
    def reason(self, /) -> Literal["aged", "covered", "edited", "error", "clamped"]:
        """
        Why: `aged`; `covered` by a later read; of a file that was `edited` later; an `error` that was made up for, or one
        of too many. Of `fit_messages` alone: `clamped`, only its ends stay.
        """
    @property
    def sample(self, /) -> str:
        """
        How the output began and ended: by this it is known again.
        """
    @property
    def stored(self, /) -> str | None:
        """
        The id under which the output has been saved, if there was a store.
        """
    @property
    def stub(self, /) -> str:
        """
        The text that stands there now.
        """
    @property
    def tool(self, /) -> str:
        """
        Name of the tool; empty if it is not known.
        """

@final
class ErrorInfo:
    """
    What an error of a provider means. Frozen, picklable.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[dict[str, Any]]]: ...
    def __repr__(self, /) -> str: ...
    def as_dict(self, /) -> dict[str, Any]:
        """
        All of it, fit for JSON.
        """
    @property
    def code(self, /) -> str | None:
        """
        The error code or type that says most, in lower case.
        """
    @property
    def context_window(self, /) -> int | None:
        """
        Tokens of the window that the provider named: the model's, or its server's, which can be smaller.
        """
    @property
    def input_tokens(self, /) -> int | None:
        """
        Tokens of the prompt among them.
        """
    @property
    def kind(
        self, /
    ) -> Literal[
        "context_overflow",
        "payload_too_large",
        "rate_limit",
        "output_cap",
        "media_limit",
        "invalid_history",
        "quota",
        "content_filter",
        "auth",
        "server",
        "unknown",
    ]:
        """
        What is wrong:

        | kind | meaning |
        | --- | --- |
        | `context_overflow` | the prompt, or prompt and answer, do not fit the model's context window |
        | `payload_too_large` | too many bytes, or a text of too many characters |
        | `rate_limit` | too much in a time |
        | `output_cap` | more output was asked for than the model writes, or the answer was cut at its limit |
        | `media_limit` | images, pages or sound: too many or too large |
        | `invalid_history` | calls and results that do not go together, changed thinking: `validate` says where |
        | `quota` | no money or allowance left |
        | `content_filter` | the provider will not answer this |
        | `auth` | who is asking, and may they? |
        | `server` | the server's fault, or the network's |
        | `unknown` | none of these, or nothing to know it by |
        """
    @property
    def limit(self, /) -> int | None:
        """
        The limit that was passed, in tokens: the window, or how many in a time.
        """
    @property
    def maybe_overflow(self, /) -> bool:
        """
        Whether it may be an overflow all the same, for nothing was said (`400 status code (no body)`). Your own count
        of the request decides: pass it as `estimated_tokens`, with `context_window`.
        """
    @property
    def message(self, /) -> str | None:
        """
        What the provider said, at most 500 bytes of it.
        """
    @property
    def model(self, /) -> str | None:
        """
        Name of the model, where the exception knows it.
        """
    @property
    def output_tokens(self, /) -> int | None:
        """
        Tokens of the output that was asked for.
        """
    @property
    def requested_tokens(self, /) -> int | None:
        """
        Tokens that the provider compared with the limit: prompt and output, where it counts both. It can be a lower
        bound.
        """
    @property
    def retry(self, /) -> Literal["shrink", "wait", "change", "no"]:
        """
        When to try again: after the prompt was made smaller (`shrink`), later (`wait`), after something else in the
        request was changed (`change`: `max_tokens`, images, pairs), or not by itself (`no`).
        """
    @property
    def retry_after(self, /) -> float | None:
        """
        Seconds after which the provider says to come back.
        """
    @property
    def shrink_helps(self, /) -> bool:
        """
        Whether a smaller prompt mends it. True for overflows and payloads, and for what a single request can pass:
        tokens per minute, number of images, prompts that cost more than is left.
        """
    @property
    def status(self, /) -> int | None:
        """
        Status of the HTTP response.
        """

@final
class Fix:
    """
    One thing that `repair` has mended, or could not. Frozen, hashable.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def action(self, /) -> str:
        """
        What was done: `dropped`, `moved`, `synthesised`, `renamed`, `converted`, `inserted`; or `left`, because it cannot
        be mended.
        """
    @property
    def call_id(self, /) -> str:
        """
        Id of the call or result that it is about, as it was; empty if there is none.
        """
    @property
    def code(self, /) -> str:
        """
        What was wrong: a code of `validate` (or `strict_predecessor`).
        """
    @property
    def index(self, /) -> int:
        """
        Index of the message in the list that came in.
        """
    @property
    def new_id(self, /) -> str | None:
        """
        The id that there is now, if it is another one.
        """

@final
class FreshTail:
    """
    What `select_fresh_tail` has chosen. Frozen.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self, /) -> str: ...
    @property
    def messages(self, /) -> list[Any]:
        """
        A list: the system messages at the start, the pinned messages, the tail.
        """
    @property
    def over_budget(self, /) -> bool:
        """
        Whether even the newest atom and the task have more tokens than they may.
        """
    @property
    def pinned(self, /) -> tuple[int, ...]:
        """
        Indices of user messages before the tail that are kept with it, ascending: the head and the task.
        """
    @property
    def split_turn(self, /) -> bool:
        """
        Whether the tail starts inside a turn.
        """
    @property
    def start(self, /) -> int:
        """
        Index of the first message of the tail: everything from here on is kept word for word.
        """
    @property
    def tokens(self, /) -> int:
        """
        Tokens of the tail and the pinned messages.
        """
    @property
    def turns(self, /) -> int:
        """
        Number of turns that the tail touches.
        """

@final
class Problem:
    """
    Something that a provider would refuse. Frozen, hashable.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    @property
    def code(self, /) -> str:
        """
        What is wrong: one of the stable codes of `validate`.
        """
    @property
    def detail(self, /) -> str:
        """
        The same as a sentence, with the id that it is about.
        """
    @property
    def index(self, /) -> int:
        """
        Index of the message.
        """

@final
class Pruned:
    """
    What `prune_tool_outputs` gives. Frozen.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self, /) -> str: ...
    @property
    def messages(self, /) -> list[Any]:
        """
        A new list: the same messages, stubs in the place of old tool outputs. Untouched messages are the same objects.
        """
    @property
    def report(self, /) -> Report:
        """
        What was replaced, and what that saves.
        """

@final
class RepairReport:
    """
    What `repair` has done. Frozen, picklable; prints as lines, `as_dict` is plain data.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str: ...
    def as_dict(self, /) -> dict[str, Any]:
        """
        The report as plain data, fit for JSON.
        """
    @property
    def changed(self, /) -> bool:
        """
        Whether the new list differs from the one that came in.
        """
    @staticmethod
    def from_dict(data: dict[str, Any]) -> RepairReport:
        """
        The report of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
        """
    @property
    def items(self, /) -> tuple[Fix, ...]:
        """
        What was done, in the order of the messages that came in.
        """

@final
class Repaired:
    """
    What `repair` gives. Frozen.
    """
    def __eq__(self, other: object, /) -> bool: ...
    def __repr__(self, /) -> str: ...
    @property
    def messages(self, /) -> list[Any]:
        """
        A new list that a provider accepts. Untouched messages are the same objects.
        """
    @property
    def report(self, /) -> RepairReport:
        """
        What was done.
        """

@final
class Report:
    """
    What `prune_tool_outputs` has done, all sizes in tokens of its counter. Frozen, picklable; `as_dict` is plain data.
    """
    def __eq__(self, value: object, /) -> bool: ...
    def __ne__(self, value: object, /) -> bool: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]: ...
    def __repr__(self, /) -> str: ...
    def __str__(self, /) -> str:
        """
        A table: what was replaced, by message.
        """
    @property
    def after(self, /) -> int:
        """
        Tokens of the new list.
        """
    def as_dict(self, /) -> dict[str, Any]:
        """
        The report as plain data, fit for JSON.
        """
    @property
    def before(self, /) -> int:
        """
        Tokens of the list that came in, as the counter gives them for a list. (The edits, and what is written again, are
        the counts of parts, without what the counter adds to a total for safety.)
        """
    @property
    def blocked_by(
        self, /
    ) -> (
        Literal["protected_turns", "protected_tokens", "protected_steps", "prune_threshold", "trigger_tokens", "kept"]
        | None
    ):
        """
        If this call has replaced nothing: the rule that was in the way. `prune_threshold`: it is too little, or does not
        pay; `protected_turns`: without that guard there would be enough; `protected_tokens`, `protected_steps`: nothing is
        old enough; `kept`: all that is old stays by a rule; `trigger_tokens`. `None`: there is nothing.
        """
    @property
    def changed(self, /) -> bool:
        """
        Whether the new list differs from the one that came in.
        """
    @property
    def earliest_changed_index(self, /) -> int | None:
        """
        Index of the first message that this call has changed: up to here the provider's cache holds. `None`: it holds
        whole.
        """
    @staticmethod
    def from_dict(data: dict[str, Any]) -> Report:
        """
        The report of which `as_dict` gave this. Raises `KeyError`, `TypeError` or `ValueError` for anything else.
        """
    @property
    def items(self, /) -> tuple[Edit, ...]:
        """
        The outputs that are stubs in the new list, in its order; those that were stubs in the list that came in are not
        among them.
        """
    @property
    def reread_of_pruned(self, /) -> tuple[int, ...]:
        """
        Indices of messages of the newest step that read lines again of which every copy had been replaced: what pruning
        has cost.
        """
    @property
    def saved(self, /) -> int:
        """
        Tokens saved.
        """
    @property
    def tokens_rewritten(self, /) -> int:
        """
        Tokens from there on that were in the last request and are written again.
        """

@final
class TextLedger:
    """
    Tokens of a text that grows at its end, as an answer that is streamed does.

    `total()` is what the counter gives for all that was appended, joined. With an exact counter, what is final is counted
    once and forgotten, so that appending a line takes as long as counting it; with others the parts are kept, and counted
    together by each `total()`. Naive sums are wrong: don and "'t" have a token each, "don't" has one.

    `counter` is a `TokenCounter`; without one it is `TokenCounter.default()`. `text` is how the text begins. Threads may
    share a ledger. It cannot be pickled.
    """
    def __new__(cls, /, counter: TokenCounter | None = None, text: str | None = None) -> TextLedger: ...
    def __repr__(self, /) -> str: ...
    def append(self, /, text: str) -> None:
        """
        Adds to the end of the text.
        """
    @property
    def counter(self, /) -> TokenCounter:
        """
        The counter.
        """
    def reset(self, /) -> None:
        """
        Empties the text.
        """
    def total(self, /) -> int:
        """
        Tokens of all of the text.
        """

@final
class TokenCounter:
    """
    Counts the tokens of texts, messages and requests.

    A counter is made by one of the constructors below. It is callable, frozen, hashable and picklable; its `repr` is
    the call that makes it. Counting never changes or keeps a message, and reads text where it lies: no UTF-8 copy is
    made or left behind, lone surrogates are fine.

    A message may be a dict in the form of OpenAI's chat completions or of Anthropic's messages, or an object of their
    SDKs. What cannot be read raises `MessageTypeError` or `MessageValueError` (`ctxfast.errors`), which say what was
    expected, what came and where (`messages[12].content`). Blocks of an unknown type are counted as their JSON.
    """
    def __call__(self, /, content: object) -> int:
        """
        Tokens of a string, a message or a list of messages.
        """
    def __eq__(self, other: object, /) -> bool: ...
    def __hash__(self, /) -> int: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]: ...
    def __repr__(self, /) -> str: ...
    def abatch(self, /, texts: Sequence[str]) -> Coroutine[Any, Any, list[int]]:
        """
        `batch` for an event loop: `await counter.abatch(texts)`.
        """
    def atext(self, /, text: str) -> Coroutine[Any, Any, int]:
        """
        `text` for an event loop, which goes on meanwhile: `await counter.atext(text)`. It is counted in a thread of
        `asyncio`, without the interpreter's lock from 2,048 characters on (65,536 with an estimator).
        """
    def batch(self, /, texts: Sequence[str], *, threads: int | None = None) -> list[int]:
        """
        Tokens of each of many strings, in their order: what `text` says of each, without the interpreter's lock.

        `threads` are at most so many threads; by default as many as the machine has cores, at most 4, and fewer if
        there are less than 131,072 characters for each. A string is not divided. A function (`from_callable`) is called
        in this thread. `abatch` is for event loops.
        Raises `MessageTypeError` for what is no list of strings, `ValueError` for fewer than one thread.
        """
    def content(self, /, parts: object) -> int:
        """
        Tokens of a message's content without the message: a string, `None` or a list of parts.
        """
    def count_up_to(self, /, text: str, limit: float) -> int:
        """
        Tokens of a text if they are at most `limit`, else `limit + 1`. An exact counter stops reading at the limit; a
        function is called once, and an estimator reads all.
        """
    @staticmethod
    def default() -> TokenCounter:
        """
        The counter that every function uses unless it is given another: `estimator("o200k")`, the family of OpenAI's
        models, with 3 % on totals.

        Other models make more tokens of the same text (Claude 3 to 4.6 about a quarter more, Claude 4.7 and later about
        half as many more): name the model, `TokenCounter.for_model("claude-sonnet-4-5")`.
        """
    @staticmethod
    def estimator(
        family: Literal[
            "o200k",
            "cl100k",
            "claude_v3",
            "claude_v47",
            "claude_legacy",
            "llama3",
            "qwen3",
            "deepseek_v3",
            "gemma3",
            "mistral_tekken",
        ] = "o200k",
        *,
        safety: float | None = None,
        message_overhead: int = ...,
        media_tokens: int = ...,
    ) -> TokenCounter:
        """
        An estimate for a family of tokenizers, from the characters of a text and their neighbours.

        `family` is `"o200k"` (GPT-4o and later), `"cl100k"` (GPT-4, GPT-3.5), `"claude_v3"` (Claude 3 to 4.6),
        `"claude_v47"` (Claude 4.7 and later), `"claude_legacy"` (Claude 2), `"llama3"`, `"qwen3"`, `"deepseek_v3"`,
        `"gemma3"` (Gemini, too) or `"mistral_tekken"`. On documents of 55 kinds that the tables were not fitted to, the
        mean error was 3.1 to 4.1 % in the study that fitted them, by family, where four characters per token were 23 to
        47 % off. It is worse for rare languages. A text of 1,000 characters and more that repeats a short thing again and
        again is counted exactly for `o200k` and `cl100k`, whose vocabularies are in the package.

        Each text of a message is estimated by itself; each message is rounded, a half up. `message_overhead` and
        `media_tokens` are those of `from_callable`.

        `safety` says how sure a count shall be. By default the total of a list of messages is raised by 3 %, for a total
        that is too low ends a run, and everything else is the middle: too low as often as too high. With 0.95 or 0.99
        whatever is counted (a text, a message, a list) is raised once, so that it is not too low for so many of 100
        documents: by 4 to 7 % or 5 to 9 %, and more where the text is short. 0.5 is the middle for totals too.
        Raises `ValueError` for another family or another safety.
        """
    @staticmethod
    def exact(
        encoding: Literal["o200k_base", "cl100k_base", "o200k_harmony"],
        *,
        special_tokens: Literal["text", "control"] = "text",
        message_overhead: int = ...,
        media_tokens: int = ...,
    ) -> TokenCounter:
        """
        The tokens that OpenAI's own tokenizer makes of a text, offline: the vocabularies are in the package.

        `encoding` is `"o200k_base"` (GPT-4o and later), `"cl100k_base"` (GPT-4, GPT-3.5) or `"o200k_harmony"` (gpt-oss).
        A text is counted as tiktoken's `len(encoding.encode_ordinary(text))` has it: what looks like a special token is
        ordinary text, a lone surrogate counts as U+FFFD; no text raises. The first counter of a process with a vocabulary
        takes some 10 milliseconds to build it. `fits` and `count_up_to` stop at their limit.

        With `special_tokens="control"` each special token of the encoding that stands in a text counts as 1, as tiktoken's
        `encode(text, allowed_special="all")` has it: for prompts that are written out with their control tokens. What
        users or tools have said should stay text.

        Each text of a message is counted by itself; `message_overhead` and `media_tokens` are those of `from_callable`.
        Raises `ValueError` for another encoding or other `special_tokens`, `RuntimeError` if the vocabulary in the package
        is damaged.
        """
    def fits(self, /, content: object, limit: float) -> bool:
        """
        Whether `content` (a string, a message or a list of messages) has at most `limit` tokens. Counting stops at the
        limit.
        """
    @staticmethod
    def flat(config: EstimatorConfig) -> TokenCounter:
        """
        A flat estimator: so many characters (or bytes) make one token.

        `config` is an `EstimatorConfig`. Counted are content, reasoning, names, arguments, ids and the frame of each
        message; each message is rounded by itself, a list is the plain sum.
        """
    @staticmethod
    def for_model(model: str | ModelInfo, *, exact: bool = True, safety: float | None = None) -> TokenCounter:
        """
        The counter of a model: the tokens of its texts, and what its provider adds for messages, tool calls, tool
        definitions and media.

        Texts are counted exactly, as by `exact`, where the encoding is known: for OpenAI's models
        (`model_info(name).encoding`). For others they are estimated, as by `estimator`, for the family of the model's
        tokenizer. `exact=False` estimates for all: faster, and without a vocabulary, which the first count of a process
        takes some 10 milliseconds to build.

        `model` is a name as providers, gateways and frameworks write it (`"gpt-5"`,
        `"bedrock/us.anthropic.claude-sonnet-4-5-v1:0"`), or a `ModelInfo`. What is known comes from a table in the
        package, never from the network; `model_info(name)` shows it.

        A name that is not in the table gives an `UnknownModelWarning`, which lists similar names (not if it comes as
        `model_info(name)`). It is counted like the newest models of its maker if the name says who that is; otherwise as
        `o200k` if it is OpenAI-compatible (`openai/...`, `azure/...`), else as 1.2 times `deepseek_v3`, the most central
        family.

        Images, PDFs and sound cost what the provider says for their size in pixels, pages or seconds, which is read from
        their headers; an image that is not in the message (a URL, an id) counts as a screenshot of 1,920 x 1,080.

        `safety` is that of `estimator`, and for estimates only: by default the total of a list is raised by 3 %, single
        texts are not. Nothing is added where texts are counted exactly.
        Raises `TypeError` if `model` is neither a string nor a `ModelInfo`, `ValueError` for an empty name or another
        safety.
        """
    @staticmethod
    def from_callable(
        fn: Callable[[str], int], *, message_overhead: int = ..., media_tokens: int = ...
    ) -> TokenCounter:
        """
        Any function `str -> int`: a tokenizer's count, say.

        It is called for each text of a message by itself (content, reasoning, names, arguments), never for ids, which
        providers do not send to the model. `message_overhead` tokens are added for each message's frame (4: OpenAI's
        documentation gives 3 for the frame and 1 for the role) and each tool, `media_tokens` for each media part. The
        counter can be pickled if the function can.
        """
    @staticmethod
    def from_tiktoken_file(
        path: str | PathLike[str],
        grammar: Literal["cl100k", "o200k", "llama3", "qwen2", "tekken"],
        *,
        special_tokens: Sequence[str] | Mapping[str, int] | None = None,
        message_overhead: int = ...,
        media_tokens: int = ...,
    ) -> TokenCounter:
        """
        The tokens that tiktoken makes with the ranks of a `.tiktoken` file and a split pattern, without tiktoken.

        `path` is the file: a line for each token, its bytes as base64, a space and its rank, from 0 on without gaps. The
        first 256 are the single bytes, as in all public files of this kind. `grammar` is the pattern that texts are split
        by before merging, which is not in the file: `"cl100k"` (GPT-4, as tiktoken has it today), `"o200k"` (GPT-4o),
        `"llama3"` (Llama 3, GLM 4), `"qwen2"` (Qwen 2 and 3) or `"tekken"` (Mistral).

        Special tokens are not in the file either. Without `special_tokens` what looks like one is ordinary text; those
        that are named (a list, or the keys of a mapping) count as 1 each, as with `exact`; of two that begin at the same
        place the longest counts.

        Counters are equal that have the same bytes in their files and the same options. Pickle keeps the path, and reads
        the file again. `message_overhead` and `media_tokens` are those of `from_callable`.
        Raises `OSError` if the file cannot be read, `ValueError` for another grammar, for a file of more than 64 MiB and
        for one that is no such vocabulary, with the line and the rank.
        """
    @staticmethod
    def from_tokenizer(tokenizer: object, *, message_overhead: int = ..., media_tokens: int = ...) -> TokenCounter:
        """
        A tokenizer object of another package, which counts through its own methods: an `Encoding` of tiktoken
        (`encode_ordinary`), a `Tokenizer` of tokenizers or a tokenizer of transformers
        (`encode(text, add_special_tokens=False)`).

        It is known by the methods that it has; none of these packages is imported. What looks like a special token is
        ordinary text to tiktoken and transformers; a `Tokenizer` finds its added tokens unless its
        `encode_special_tokens` is set. A lone surrogate counts as U+FFFD. The counter can be pickled if the object can.
        All else is as with `from_callable`.
        Raises `TypeError` for another object, `ValueError` for a `Tokenizer` that truncates or pads.
        """
    @staticmethod
    def from_tokenizer_json(
        path: str | PathLike[str],
        *,
        special_tokens: Literal["text", "control"] = "text",
        message_overhead: int = ...,
        media_tokens: int = ...,
    ) -> TokenCounter:
        """
        The tokens that Hugging Face's tokenizers makes with a `tokenizer.json`, without that package: byte-level BPE that
        splits by a known pattern.

        The files of Llama 3, Qwen 2 and 3, GLM 4 and MiniMax are such; `ignore_merges` and the normal form NFC are
        followed. Mistral's `tekken.json` is read as well. Everything in a file that is not known is a `ValueError` which
        says what was expected, what came and where; nothing is guessed.

        What looks like a special token is ordinary text. With `special_tokens="control"` each of the file's
        `added_tokens`, special or not, counts as 1: that is what `len(tokenizer.encode(text, add_special_tokens=False))`
        counts. Truncation, padding and what the file puts around a text are not followed.

        Counters are equal that have the same bytes in their files and the same options. Pickle keeps the path, and reads
        the file again. `message_overhead` and `media_tokens` are those of `from_callable`.
        Raises `OSError` if the file cannot be read, `ValueError` for other `special_tokens`, for a file of more than
        64 MiB and for one that is no such tokenizer.
        """
    def head(self, /, text: str, max_tokens: float) -> str:
        """
        The longest prefix of `text` that has at most `max_tokens` tokens, cut between characters.

        With an estimator or a function the prefix fits, and is the longest if counts do not fall as text grows. With an
        exact counter it is as much as the first `max_tokens` tokens make whole characters of (less in the rare case that
        cutting there makes more tokens), and little behind it is read.
        """
    def message(self, /, message: object) -> int:
        """
        Tokens of one message.
        """
    def messages(self, /, messages: Sequence[object], tools: Sequence[object] | None = None) -> int:
        """
        Tokens of a list of messages, and of tool definitions: the sum, with the counter's safety and what the model's
        provider adds to a request.
        """
    @staticmethod
    def picoclaw(version: Literal["4.0", "2.5"]) -> TokenCounter:
        """
        PicoClaw's estimator, bit by bit: `"4.0"` characters per token rounded up, as its fork has it, or `"2.5"` rounded
        down, as upstream has it. Content and reasoning count code points; ids, names, arguments and schemas count bytes.
        """
    def request(self, /, body: object) -> int:
        """
        Tokens of a request body: its `messages`, `system` (Anthropic's separate system prompt) and `tools`.
        """
    def tail(self, /, text: str, max_tokens: float) -> str:
        """
        The longest suffix of `text` that has at most `max_tokens` tokens, cut between characters; see `head`. An exact
        counter reads from the end: how much is before the suffix does not matter.
        """
    def text(self, /, text: str) -> int:
        """
        Tokens of a string.
        """
    def tools(self, /, tools: Sequence[object] | None) -> int:
        """
        Tokens of tool definitions: name, description, JSON schema and a frame for each.
        """

@final
class TokenLedger:
    """
    Token totals of a conversation that grows: what was counted once is not counted again.

    It holds a number for each message, and no message. Messages are counted when they come in, and the total is what the
    counter gives for all of them. One that is edited later has to come in again: by `replace`, or by `resync`, which
    finds it in the list.

    `counter` is a `TokenCounter`; without one it is `TokenCounter.default()`. `messages` are the first ones. Threads may
    share a ledger, and a counting function may use the ledger that it counts for; it has to give the same count for the
    same text. What cannot be read raises `MessageTypeError` or `MessageValueError` and changes nothing. Can be pickled if
    its counter can.
    """
    def __copy__(self, /) -> TokenLedger: ...
    def __len__(self, /) -> int: ...
    def __new__(
        cls, /, counter: TokenCounter | None = None, messages: Sequence[object] | None = None
    ) -> TokenLedger: ...
    def __reduce__(self, /) -> tuple[Any, tuple[Any, ...]]: ...
    def __repr__(self, /) -> str: ...
    def append(self, /, message: object) -> None:
        """
        Counts one more message, at the end.
        """
    def copy(self, /) -> TokenLedger:
        """
        Another ledger with the same counter and counts.
        """
    @property
    def counter(self, /) -> TokenCounter:
        """
        The counter.
        """
    def extend(self, /, messages: Sequence[object]) -> None:
        """
        Counts more messages, at the end; all of them, or none if one cannot be read.
        """
    def replace(self, /, index: int, message: object) -> None:
        """
        Puts another message in place of the one at `index`, which may be negative, as in lists. Raises `IndexError`
        where there is none.
        """
    def resync(self, /, messages: Sequence[object]) -> int:
        """
        Makes the ledger equal to `messages`, whatever has happened to the list since, and returns how many of them were
        counted. All or nothing, as in `extend`; what other threads add meanwhile is lost.

        With an estimator or a function, a message that the ledger knows is not counted again, wherever it stood; one that
        was edited in place is. Messages are told apart by a hash of 64 bits of all that is counted, seeded anew in each
        process. It reads a text at most once, since Python keeps the hash of a string in the string. A ledger that comes
        from a pickle knows none. Flat counters are as fast as hashing: with them, all messages are counted.
        """
    def tail_within(self, /, budget: float) -> int:
        """
        The index of the first message of the longest suffix that has at most `budget` tokens; `len(ledger)` if not even
        the newest message fits. Walks back from the end and stops at the budget.

        This is arithmetic and no place to cut: it may part a call from its result. `select_fresh_tail` does not.
        """
    def tokens(self, /, index: int) -> int:
        """
        Tokens of the message at `index` by itself, without the safety that the total has. `index` may be negative, as in
        lists. Raises `IndexError` where there is none.
        """
    def total(self, /) -> int:
        """
        Tokens of all messages: what the counter gives for the list.
        """
    def truncate(self, /, length: int) -> None:
        """
        Keeps the first `length` messages, or all if there are fewer. Raises `ValueError` for a negative number.
        """

def _estimator_table(family: str) -> bytes:
    """
    The table of a family of tokenizers, as bytes: for `ctxfast.reference`.
    """

def _fit(
    messages: Sequence[object], wanted: dict[str, Any], form: str, provider: str | None, counter: TokenCounter | None
) -> tuple[
    list[Any],
    RepairReport,
    int,
    int,
    int,
    list[Edit],
    list[tuple[int, int, str, int, str, str | None]],
    list[int],
    int | None,
]:
    """
    What `ctxfast.fitting.fit_messages` does.
    """

def _image_tokens(rule: ImageRule, width: SupportsIndex, height: SupportsIndex, detail: str) -> int:
    """
    Tokens of an image, by an `ImageRule`.
    """

def _keep_last(
    messages: Sequence[object],
    n_steps: int,
    form: str,
    provider: str | None,
    counter: TokenCounter | None,
    store: SupportsSave | None,
) -> tuple[
    list[Any],
    RepairReport,
    int,
    int,
    int,
    list[Edit],
    list[tuple[int, int, str, int, str, str | None]],
    list[int],
    int | None,
]:
    """
    What `ctxfast.fitting.keep_last` does.
    """

def _restore_counter(constructor: str, arguments: tuple[object, ...], options: dict[str, object]) -> Any:
    """
    Makes a counter again from what pickle kept of it.
    """

def _restore_error_info(fields: dict[str, object]) -> ErrorInfo:
    """
    Makes an `ErrorInfo` again from what pickle kept of it.
    """

def _restore_ledger(counter: TokenCounter, tokens: Sequence[int]) -> TokenLedger:
    """
    Makes a ledger again from what pickle kept of it.
    """

def _transcribe(
    messages: Sequence[object], policy: PrunePolicy | None, counter: TokenCounter | None
) -> list[dict[str, Any]]:
    """
    What the messages of a list say, a dict for each: `role`, `own_text` (a user says something), `text` (of its text
    parts; no reasoning), `media` (how many parts beside it), `form` (the only one that it can be of), `thinking` (whether it
    has any that must be sent back), `tokens`, `calls` (names and arguments) and `outputs`, a dict for each tool output:
    `tool`, `kind`, `path`, `lines` (first and last; the end is `None`), `edits`, `command`, `pattern`, `other`, `details`,
    `target` (what a later success must be about to make up for a failure), `failed`, `exit_code`, `kept` (by `policy`),
    `text` and `attachments`.
    """

def atoms(messages: Sequence[object]) -> list[tuple[int, int]]:
    """
    What is kept or dropped whole, as half-open index ranges `(start, stop)` that cover the list.

    An atom is a run of system (or developer) messages, a user message, or a step: an assistant message with everything
    up to the last result of its calls, a user message that arrived in between included. Steps that overlap are one
    atom; results whose call is nowhere go with the step before them.

    Pairing is positional: a result answers the nearest earlier open call with its id; within one message equal ids match
    in order. Ids may repeat, be blank or missing. Linear in the number of messages.
    """

def classify_error(
    error: object,
    status: int | None = None,
    provider: str | None = None,
    *,
    context_window: int | None = None,
    estimated_tokens: int | None = None,
) -> ErrorInfo:
    """
    What an error of a provider means, and the numbers in it.

    `error` can be an exception of any library (`openai`, `anthropic`, Google, `botocore`, `litellm`, `httpx`,
    `langchain`, `pydantic-ai`: known by their attributes and the names of their classes, none is imported), with its
    causes; a body as dict, JSON or text; an event of a stream, whole or in part; or a response that came and was cut
    (`finish_reason`, `stop_reason`). Wrappings do not matter: JSON in JSON, Python's `repr`, the words that gateways
    put in front.

    `status` is that of the HTTP response, if it is known and not in `error`. `provider` ("zhipu", "minimax",
    "fastchat") matters for codes that are mere numbers.

    With `context_window` and `estimated_tokens` (of the request) more can be decided: whether a refusal without words
    (`400 status code (no body)`) is an overflow, which it is from 80 % of the window on, and whether an answer was made
    of a prompt that the server had cut.

    Never raises, whatever the attributes of `error` do, but for wrong types of the other parameters (`TypeError`,
    `ValueError`). Bounded in depth and size: at most a megabyte of a text is read.
    """

def count_tokens(
    content: object,
    *,
    tools: Sequence[object] | None = None,
    model: str | ModelInfo | None = None,
    counter: TokenCounter | None = None,
) -> int:
    """
    Tokens of a string, a message or a list of messages, and of tool definitions.

    `model` is the name of a model or a `ModelInfo`, for `TokenCounter.for_model`; `counter` is a `TokenCounter`. Without
    either it is `TokenCounter.default()`; both together are a `ValueError`.
    """

def cut_text(
    text: str,
    size: tuple[SupportsIndex, SupportsIndex],
    limits: tuple[SupportsIndex, SupportsIndex, SupportsIndex],
    keep: str,
) -> tuple[int, int, int, int] | None:
    """
    Where a text of so many lines and bytes is cut that is longer than the limits in lines, bytes and characters:
    characters that are kept at the start and at the end, lines of which nothing is kept, bytes that are not. `None` if it
    is not longer. `keep` is `"head"`, `"tail"`, `"halves"` or `"mostly_tail"`.
    """

def find_safe_cut(messages: Sequence[object], target: int, mode: Literal["steps", "role"] = "steps") -> int:
    """
    Where to cut near `target`: the largest safe cut in 1 to `target`, else the next one below `len(messages)`, else 0,
    which means: cut nothing.

    `mode="role"` is PicoClaw's rule, for drop-in use: every message of role user is a cut, and `target` itself in a list
    without any. It can part a call from its result.
    """

def fresh_tail_budget(usable_tokens: float) -> int:
    """
    The fresh tail's budget in tokens, for so many usable tokens: 25 %, at least 2,000 and at most 8,000, and never above
    half of the usable context (small windows).

    Usable is the context window less the reserve for output and a safety margin. Source of the bounds: PicoClaw and
    OpenCode; `ctxfast.compat.CalculateFreshTailBudget` is PicoClaw's plain clamp.
    """

def join_ascii(text: str, head: SupportsIndex, gap: str, start: SupportsIndex, end: SupportsIndex) -> str:
    """
    What is left of an ASCII text: so many characters of its start, a line in the gap, and the characters from `start` to
    `end`. Made at once: added up in Python it would take up to twice the memory.
    """

def kept_ends(keep: str, tool_name: str) -> str:
    """
    Which ends of an output are kept: those that `keep` asks for, or those that suit the kind of tool.
    """

def output_hash(output: Any) -> str:
    """
    A hash of a text or of bytes, 32 digits; a text has that of its UTF-8.
    """

def output_json(content: Any) -> str:
    """
    The parts of a tool output as compact JSON: what is saved of it.
    """

def output_text(content: Any) -> tuple[str, int]:
    """
    The text of a tool output, its text parts joined by line feeds, and how many parts are no text.
    """

def prune_tool_outputs(
    messages: Sequence[object],
    protected_turns: int | None = None,
    prune_threshold: int | Literal["auto"] | None = None,
    *,
    protected_tokens: int | None = None,
    protected_steps: int | None = None,
    budget: float | None = None,
    prices: CachePrices | None = ...,
    policy: PrunePolicy | None = None,
    previous: Report | Pruned | None = None,
    counter: TokenCounter | None = None,
    store: SupportsSave | None = None,
) -> Pruned:
    """
    Old tool outputs as stubs, everything else as it is: a new list, and a report of what was done.

    A stub is one line of facts and up to three lines of what was there, at most 400 characters; it is always shorter
    than the output, and smaller by `counter` (default: `TokenCounter.default()`). Calls, ids and all other messages are
    never touched, so that the new list is as valid as the old one. A changed message that was no dict comes back as one.
    What is a stub stays one: pruning twice changes nothing.

    **Protected** are the outputs in the newest `protected_steps` steps (default 3; what the model has not seen yet in any
    case), in the newest `protected_tokens` tokens of tool output (10,000; the output that crosses the border is not
    protected, nor is any older one), and in the newest `protected_turns` turns (0; in most agent sessions two turns are
    everything: `report.blocked_by` says when this guard was in the way). `policy`, a `ctxfast.policy.PrunePolicy`, has
    more to say: kept tools and paths, errors, presets of other agents. What is given beside it goes before it.

    **When.** `prune_threshold="auto"` replaces all that is not protected as soon as that pays: if it saves at least
    10,000 tokens (a tenth of `budget`, the usable tokens of the context window, if that is less), and if
    `read * saved * horizon >= (write - read) * rest`, where `rest` are the tokens behind the first changed message that
    remain and were in the last request, for these must be written into the provider's cache again. `prices` is a
    `CachePrices` (default: `CachePrices()`, which are Anthropic's); `None`: there is no cache, every saving pays. They
    matter to `"auto"` only. A number of tokens instead of `"auto"` replaces batches
    that free so many each, counted from the start of the list: the same ones on every call, whatever is appended.

    **Stable.** `"auto"` does not know what was decided before unless it is told: go on with the list that it gave, or pass
    the full list again and the report of the last call as `previous`, whose stubs are put in first. A number needs
    neither; with either, its batches are counted from what is no stub yet.

    **Nothing is lost.** With a `store`, anything with a method `save(text) -> id`, each output is saved before it is
    replaced (content that is no string as its JSON), and the stub names the id (one with a fixed text does not; it is in
    the report). What `save` raises is raised: then nothing was replaced. A store that gives `None` instead of an id could
    not save that output: the stub names none, and the edit's `stored` is `None`.

    Reads that a later read covers, or whose file was edited since, join a batch from inside `protected_tokens`; they never
    start one. With a `budget` at most a quarter of it is protected. All sizes are tokens of `counter`. Raises
    `MessageTypeError` or `MessageValueError` for a message that cannot be read, `BudgetError`, `TypeError` or `ValueError`
    for an argument that means nothing.
    """

def remove(
    messages: Sequence[object],
    ids: Iterable[str],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    *,
    provider: Literal["openai", "anthropic"] | None = None,
) -> Repaired:
    """
    The list without some tool calls, by their ids: they go with their results, and so does a message that says nothing
    else. In the report these are `removed`; what else was wrong is mended, as `repair` does it.

    Everything else stays, untouched messages are the same objects. Of several calls with an id all go. An id that no call
    has changes nothing. `form` and `provider` are those of `repair`. Raises `TypeError` if `ids` is no collection of
    texts (one text is none), `MessageTypeError` or `MessageValueError` for what is no message at all.
    """

def repair(
    messages: Sequence[object],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    *,
    provider: Literal["openai", "anthropic"] | None = None,
    strict_predecessor: bool = False,
) -> Repaired:
    """
    The list as a provider accepts it: `validate` finds nothing in `repair(messages).messages`, if a user says anything
    in it. What was done is in the report, all of it. A list without faults comes back as it is, in a new list.

    | fault | what is done |
    | --- | --- |
    | `orphan_result`, `duplicate_result` | dropped; the first result of a call counts. Results and calls that lack each other for want of an id are put together, if they stand in one place and there are as many of both |
    | `unanswered_call` | gets a result that says that the call was interrupted, behind the results of its message |
    | `result_out_of_order`, `split_parallel_group` | moved to the call's message; what a user said in between comes after it, in Anthropic's form in a message of its own or behind the results of one message |
    | `blank_name` | dropped with its result, and so is the message if it says nothing else |
    | `blank_id`, `duplicate_call_id` | call and result get an id `call_<message>_<place>` |
    | `empty_message`, `empty_text`, `thinking_without_signature` | dropped |
    | `result_after_text` | results first |
    | `first_not_user` | a user's message is put in front that says that the conversation begins |
    | `mixed_forms`, `unknown_role` | written in the form of the list; `ai` and `model` are the assistant, whoever else is unknown a user |
    | `no_user_message` | left: nobody can know what a user would have said |

    Calls that are still running at the end stay so. What a user says is never dropped, complete rounds neither; texts,
    arguments and outputs stay as they are. Results are paired with calls by position, as everywhere (`atoms`). The list
    and its messages are not changed; untouched messages are the same objects, a changed one that was no dict comes back
    as one. Mending twice changes nothing. `form` and `provider` are those of `validate`; with another form than the
    list's this is a translation of calls and results.

    `strict_predecessor=True` does what PicoClaw does instead, for drop-in use: it only drops, also complete rounds that
    follow an assistant message, and system messages; what it gives can be refused.

    Linear in the number of messages. Raises `MessageTypeError` or `MessageValueError` for what is no message at all.
    """

def safe_cuts(messages: Sequence[object]) -> list[int]:
    """
    All indices, 0 to `len(messages)`, at which no call lies before with its result at or after.

    Results whose call is nowhere (duplicates, orphans) make no index unsafe; `atoms` keeps them with the step before.

    The results of calls that are still running (the list ends in calls with nothing but results after them) are still to
    come and count as standing at the end: then `len(messages)` is no safe cut, nor is any index behind such a call. A call
    that was interrupted long ago blocks nothing.
    """

def select_fresh_tail(
    messages: Sequence[object],
    budget: float = ...,
    *,
    min_turns: int = ...,
    max_tokens: float | None = None,
    counter: TokenCounter | None = None,
) -> FreshTail:
    """
    The newest messages that fit a budget, and the user messages that they need.

    One budget, in this order: (1) the newest atom, always; (2) the task, which is the newest user message that says
    something, and the head, the user message that opens the turn into which the cut falls, pinned in front if they lie
    before the tail; (3) older atoms, whole, while everything together fits. If the head does not fit, the tail starts at
    the next turn; inside the newest turn it is left out. Up to the start of the `min_turns`-th newest turn the limit is `max_tokens` (default: `budget`) instead of `budget`.

    System messages at the start of the list stay in front and are not part of the budget. Messages are the same objects
    in a new list; only of a pinned user message that also carries tool results the rest is a new dict.

    The walk starts at the end and reads few more messages than it keeps, but for a glance back for the user message that
    opened a long turn (a user message directly before tool results came in the middle of a step and opened none); only a
    result without a call in the newest messages makes it read on until it knows. Messages that are not read are not
    checked. `tokens` leaves out the system messages in front. Budgets are in tokens of `counter` (default:
    `TokenCounter.default()`). Raises `BudgetError` for a budget below 1 or a `max_tokens` below the budget.
    """

def step_starts(messages: Sequence[object]) -> list[int]:
    """
    Indices at which steps begin: a step is one model response with all results of its calls.

    Steps that overlap begin together, so each is a safe cut.
    """

def text_size(text: str) -> tuple[int, int]:
    """
    Lines and UTF-8 bytes of a text. A line feed at its end begins no further line.
    """

def tool_kinds() -> list[tuple[str, str]]:
    """
    Patterns of tools' names (`*` is anything; the case of A to Z does not matter), and what kind of tool they are: the
    first that matches counts.
    """

def truncation_marker(
    omitted_lines: SupportsIndex, omitted_bytes: SupportsIndex, saved_as: str | None, hint: str
) -> str:
    """
    The line that stands where something was cut out.
    """

def turn_starts(messages: Sequence[object]) -> list[int]:
    """
    Indices of the user messages that open a turn.

    A message that carries tool results opens none, be there text beside them, nor does a user message that arrived inside
    a step. Each is a safe cut.
    """

def validate(
    messages: Sequence[object],
    form: Literal["auto", "openai", "anthropic"] = "auto",
    provider: Literal["openai", "anthropic"] | None = None,
) -> list[Problem]:
    """
    What a provider would refuse, in the order of the messages; an empty list if nothing.

    `form` is `"openai"` or `"anthropic"`; `"auto"` takes that of the first message that can only be of one, and OpenAI's
    if there is none. With `provider="anthropic"` the rules of Anthropic's own that reach through a gateway hold for
    OpenAI's form too: who speaks first, no empty messages.

    The codes are stable:

    | code | what is wrong | forms |
    | --- | --- | --- |
    | `orphan_result` | a result that answers no open call | both |
    | `duplicate_result` | a second result of a call | both |
    | `unanswered_call` | a call without a result, though the conversation went on (calls that are still running are fine) | both |
    | `result_out_of_order` | the results of a message's calls do not come directly after it | both |
    | `split_parallel_group` | some of them come directly after it, others later | both |
    | `blank_id`, `blank_name` | a call or result without an id, a call without a name | both |
    | `no_user_message` | nothing said by a user | both |
    | `mixed_forms`, `unknown_role` | a message of the other form; a role that the form does not know | both |
    | `duplicate_call_id` | the same id twice in one message | Anthropic |
    | `first_not_user` | the first message is none of a user | Anthropic |
    | `empty_message`, `empty_text` | nothing in a message; a text block without text | Anthropic |
    | `result_after_text` | a tool result behind other blocks of its message | Anthropic |
    | `thinking_without_signature` | a thinking block that cannot be sent back | Anthropic |

    Linear in the number of messages. Raises `MessageTypeError` or `MessageValueError` for what is no message at all.
    """

def write_output(path: str | PathLike[str], output: Any) -> str:
    """
    Writes a text (as UTF-8) or bytes to a file that must not exist yet, readable by its owner only, and gives the hash.
    Raises `OSError`.
    """
