"""A refused request is made smaller and sent again: the loop of docs/errors.md, through the real SDKs.

A fake transport plays the provider. It counts what comes in by itself, refuses what is larger than its window in the
provider's own words, and what a provider would not take for other reasons (a result without its call) in others.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import anthropic
import httpx2
import openai
import pytest
from cases import Message, has_user_text, pairing
from growing_sessions import SYSTEM, Form, session, user_texts

import ctxfast
from ctxfast import (
    BudgetError,
    ContextBudget,
    ContextOverflowError,
    WindowError,
    classify_error,
    fit_messages,
    validate,
)

WINDOW = 32_000  # tokens that the provider takes
ANSWER = "Done."
FORMS: tuple[Form, ...] = ("openai", "anthropic")
# Characters of JSON for each of the provider's tokens: it counts 0.8, 1.0 and 1.3 times what ctxfast estimates.
RATES = (4.0, 3.1, 2.4)


def estimate_of(messages: Sequence[Message], system: str | None) -> int:
    return ctxfast.count_tokens(messages) + (ctxfast.count_tokens(system) if system else 0)


# --------------------------------------------------------------------------------------------------- the loop


@dataclass(frozen=True)
class Refusal:
    """What was sent, in tokens; what was known of the window before and after it was refused; the error."""

    estimate: int
    before: int | None
    after: int | None
    error: Exception


@dataclass
class Asked:
    """What came of it."""

    answer: str
    sent: list[Message]
    budget: ContextBudget
    refusals: list[Refusal]


def ask(
    call: Callable[[list[Message]], str], messages: list[Message], budget: ContextBudget, system: str | None = None
) -> Asked:
    """What a user writes: ask; if it is too large, learn how much fits, make it smaller, ask again.

    A request that was above what is known, or now learned, of the window is made to fit that. If it was not, or that
    has been done and no number is new, a tenth less than the request, with the output tokens that are asked for, is
    taken for the window. What cannot be made smaller ends in a `WindowError`.
    """
    sent, refusals = messages, list[Refusal]()
    while True:
        try:
            return Asked(call(sent), sent, budget, refusals)
        except Exception as error:
            estimate = estimate_of(sent, system)
            info = classify_error(error, context_window=budget.context_window, estimated_tokens=estimate)
            if info.retry != "shrink":
                raise
            overflow = ContextOverflowError(None, budget.context_window, estimate, info.message or "")
            try:
                learned = budget.learned(info.context_window)
                if not learned.is_over(estimate) or (refusals and learned is budget):
                    learned = learned.learned(estimate * 9 // 10 + (learned.max_output_tokens or 0))
            except BudgetError:  # the reserve for the answer leaves nothing of so small a window
                raise overflow from error
            refusals.append(Refusal(estimate, budget.context_window, learned.context_window, error))
            budget = learned
            sent = fit_messages(sent, budget, system=system).messages
            if estimate_of(sent, system) >= estimate:
                raise overflow from error


# ----------------------------------------------------------------------------------------------- the provider

Refuse = Callable[[int], tuple[int, Any]]  # of its tokens: the status and the body of a refusal


@dataclass
class Provider:
    """A server in one provider's form: its window, how it counts, how it refuses; the requests that have come in."""

    form: Form
    window: float = WINDOW
    rate: float = 3.1
    refuse: Refuse | None = None
    requests: list[list[Message]] = field(default_factory=list)
    sizes: list[int] = field(default_factory=list)

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        body = json.loads(request.content)
        self.requests.append(body["messages"])
        self.sizes.append(self.count(body))
        if self.sizes[-1] > self.window:
            status, refusal = (self.refuse or self.in_its_words)(self.sizes[-1])
        elif fault := self.fault(body["messages"]):
            status, refusal = 400, {"error": {"type": "invalid_request_error", "message": fault}}
        else:
            return httpx2.Response(200, json=self.answer())
        return httpx2.Response(status, **({"text": refusal} if isinstance(refusal, str) else {"json": refusal}))

    def count(self, body: Message) -> int:
        """Characters of each message as JSON and four tokens more, the system prompt as one of them."""
        messages = [*([body["system"]] if "system" in body else []), *body["messages"]]
        return sum(round(len(json.dumps(message)) / self.rate) + 4 for message in messages)

    def fault(self, messages: list[Message]) -> str | None:
        """What makes such a provider refuse a list, apart from its size."""
        pairs, openai_form = pairing(messages), self.form == "openai"
        if pairs.orphans:
            if openai_form:
                return "messages with role 'tool' must be a response to a preceding message with 'tool_calls'."
            return f"messages.{pairs.orphans[0][0]}: unexpected `tool_use_id` found in `tool_result` blocks"
        if pairs.unanswered:
            if openai_form:
                return "An assistant message with 'tool_calls' must be followed by tool messages"
            return f"messages.{pairs.unanswered[0][0]}: `tool_use` ids were found without `tool_result` blocks"
        first = next((message for message in messages if message["role"] != "system"), None)
        return None if first and first["role"] == "user" else 'messages: first message must use the "user" role'

    def in_its_words(self, tokens: int) -> tuple[int, Message]:
        if self.form == "anthropic":
            message = f"prompt is too long: {tokens} tokens > {self.window} maximum"
            error = {"type": "invalid_request_error", "message": message}
            return 400, {"type": "error", "error": error, "request_id": "req_1"}
        message = (
            f"This model's maximum context length is {self.window} tokens. However, your messages resulted in "
            f"{tokens} tokens. Please reduce the length of the messages."
        )
        error = {"message": message, "type": "invalid_request_error", "param": "messages"}
        return 400, {"error": {**error, "code": "context_length_exceeded"}}

    def answer(self) -> Message:
        if self.form == "anthropic":
            usage = {"input_tokens": self.sizes[-1], "output_tokens": 3}
            said = {"role": "assistant", "content": [{"type": "text", "text": ANSWER}], "stop_reason": "end_turn"}
            return {"id": "msg_1", "type": "message", "model": "some-model", "usage": usage, **said}
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": ANSWER}}
        usage = {"prompt_tokens": self.sizes[-1], "completion_tokens": 3, "total_tokens": self.sizes[-1] + 3}
        kind = {"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "some-model"}
        return {**kind, "choices": [choice], "usage": usage}

    @property
    def system(self) -> str | None:
        """What is sent beside the messages."""
        return SYSTEM if self.form == "anthropic" else None

    def client(self) -> Callable[[list[Message]], str]:
        """A call through the SDK, with its own retries as they are by default."""
        http = httpx2.Client(transport=httpx2.MockTransport(self))
        if self.form == "anthropic":
            claude = anthropic.Anthropic(api_key="x", http_client=http)

            def ask_claude(messages: Any) -> str:
                said = claude.messages.create(model="some-model", max_tokens=100, system=SYSTEM, messages=messages)
                return "".join(block.text for block in said.content if block.type == "text")

            return ask_claude
        client = openai.OpenAI(api_key="x", http_client=http)

        def ask_openai(messages: Any) -> str:
            said = client.chat.completions.create(model="some-model", messages=messages)
            return said.choices[0].message.content or ""

        return ask_openai

    def asked(self, messages: list[Message], budget: ContextBudget) -> Asked:
        return ask(self.client(), messages, budget, self.system)


def check_accepted(provider: Provider, messages: list[Message], asked: Asked) -> None:
    """It came, and what was accepted is a valid, shorter request with the system prompt and the task in it."""
    assert asked.answer == ANSWER
    accepted = provider.requests[-1]
    assert accepted == asked.sent  # what the SDK has sent
    assert provider.sizes[-1] <= provider.window
    assert validate(accepted) == validate(accepted, provider=provider.form) == []
    assert provider.fault(accepted) is None
    assert any(user_texts(messages)[-1] in text for text in user_texts(accepted))  # the task
    assert [message for message in accepted if message["role"] == "system"] == [
        message for message in messages if message["role"] == "system"
    ]
    assert accepted[-1] == messages[-1]  # what the model is to answer
    assert len(provider.requests) == len(asked.refusals) + 1


# --------------------------------------------------------------------------------------------- with the numbers


@pytest.mark.parametrize("turns", [1, 5])
@pytest.mark.parametrize("rate", RATES)
@pytest.mark.parametrize("form", FORMS)
def test_one_retry_suffices(form: Form, rate: float, turns: int) -> None:
    """The provider names its window: that is learned, and the next request is accepted."""
    messages = session(60, turns=turns, form=form)
    before = copy.deepcopy(messages)
    provider = Provider(form, rate=rate)
    asked = provider.asked(messages, ContextBudget(200_000))
    check_accepted(provider, messages, asked)
    assert messages == before
    (refusal,) = asked.refusals
    assert asked.budget == ContextBudget(WINDOW, source="learned")
    info = classify_error(refusal.error)
    assert (info.kind, info.status, info.retry) == ("context_overflow", 400, "shrink")
    assert (info.context_window, info.requested_tokens) == (WINDOW, provider.sizes[0])
    overflow = ContextOverflowError.from_exception(refusal.error, model="some-model")
    assert overflow is not None
    assert (overflow.model, overflow.context_window) == ("some-model", WINDOW)
    assert (overflow.requested_tokens, overflow.reason) == (provider.sizes[0], info.message)
    assert overflow.__cause__ is refusal.error


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known", [None, WINDOW + 8_000, 10 * WINDOW])
def test_whatever_was_known_before(form: Form, known: int | None) -> None:
    """No window, one a little too large, one far too large: the provider's word is learned all the same."""
    messages = session(50, form=form)
    provider = Provider(form)
    asked = provider.asked(messages, ContextBudget(known))
    check_accepted(provider, messages, asked)
    assert len(asked.refusals) == 1
    assert (asked.budget.context_window, asked.budget.source) == (WINDOW, "learned")


@pytest.mark.parametrize("form", FORMS)
def test_what_fits_is_sent_as_it_is(form: Form) -> None:
    messages = session(4, form=form)
    provider = Provider(form)
    budget = ContextBudget(200_000)
    asked = provider.asked(messages, budget)
    check_accepted(provider, messages, asked)
    assert asked.sent is messages
    assert asked.budget is budget


@pytest.mark.parametrize("form", FORMS)
def test_the_window_is_learned_once(form: Form) -> None:
    """Who keeps the budget and cuts before the next call is not refused again."""
    messages = session(60, form=form)
    provider = Provider(form)
    asked = provider.asked(messages, ContextBudget(200_000))
    same_window = Provider(form)
    fitted = fit_messages(messages, asked.budget, system=provider.system)
    again = same_window.asked(fitted.messages, asked.budget)
    check_accepted(same_window, messages, again)
    assert again.refusals == []


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("rate", [1.5, 1.0])
@pytest.mark.parametrize("steps", [20, 60])
def test_a_provider_that_counts_two_or_three_times_as_much(steps: int, rate: float, form: Form) -> None:
    """Its window is known, and what ctxfast takes for as much is still refused: then the estimate is what counts."""
    messages = session(steps, form=form)
    provider = Provider(form, rate=rate)
    asked = provider.asked(messages, ContextBudget(200_000))
    check_accepted(provider, messages, asked)
    assert provider.sizes[0] > 1.8 * asked.refusals[0].estimate
    assert 1 <= len(asked.refusals) <= 4
    assert asked.budget.context_window == asked.refusals[-1].after
    for refusal in asked.refusals:
        assert refusal.after in (WINDOW, refusal.estimate * 9 // 10)
        assert refusal.after is not None
        assert refusal.after <= WINDOW


# -------------------------------------------------------------------------------------------- without numbers

SILENT: dict[str, Refuse] = {
    "413": lambda _: (413, ""),
    "413 of a gateway": lambda _: (413, "<html><body><h1>413 Request Entity Too Large</h1></body></html>"),
    "words": lambda _: (400, {"message": "Input is too long for requested model."}),
    "a code": lambda _: (
        400,
        {
            "error": {
                "message": "Your input exceeds the context window of this model. Please adjust your input.",
                "type": "invalid_request_error",
                "param": "input",
                "code": "context_length_exceeded",
            }
        },
    ),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("known", [None, 48_000, 80_000, 200_000])
@pytest.mark.parametrize("said", SILENT)
def test_an_overflow_without_numbers(said: str, known: int | None, form: Form) -> None:
    """What is known holds for the first refusal; each further one learns nine tenths of what was sent."""
    messages = session(60, form=form)
    provider = Provider(form, refuse=SILENT[said])
    budget = ContextBudget(known)
    asked = provider.asked(messages, budget)
    check_accepted(provider, messages, asked)
    assert 1 <= len(asked.refusals) <= 4
    first, *further = asked.refusals
    if budget.is_over(first.estimate):
        assert first.after == first.before == known
    else:  # nothing is known that would make it smaller
        assert first.after == first.estimate * 9 // 10
    for refusal in further:
        assert refusal.after == min(refusal.before or refusal.estimate, refusal.estimate * 9 // 10)
    estimates = [refusal.estimate for refusal in asked.refusals]
    assert estimates == sorted(set(estimates), reverse=True)  # each request is smaller than the one before
    assert all(classify_error(refusal.error).context_window is None for refusal in asked.refusals)


@pytest.mark.parametrize("form", FORMS)
def test_nothing_said_at_all(form: Form) -> None:
    """`400 status code (no body)`: an overflow if the request fills the known window, else not one."""
    messages = session(60, form=form)
    estimate = estimate_of(messages, None)
    provider = Provider(form, window=estimate * 9 // 10, refuse=lambda _: (400, ""))
    asked = provider.asked(messages, ContextBudget(estimate))
    check_accepted(provider, messages, asked)
    assert len(asked.refusals) == 1
    half_full = Provider(form, refuse=lambda _: (400, ""))
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
        half_full.asked(messages, ContextBudget(2 * estimate))
    assert classify_error(caught.value).maybe_overflow
    assert len(half_full.requests) == 1


# ---------------------------------------------------------------------------------------------- it always ends

BUDGETS = {
    "unknown": ContextBudget(None),
    "known": ContextBudget(200_000),
    "reserve": ContextBudget(200_000, max_output_tokens=8_000),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("budget", BUDGETS.values(), ids=BUDGETS)
@pytest.mark.parametrize("said", ["numbers", *SILENT])
def test_a_provider_that_refuses_everything(said: str, budget: ContextBudget, form: Form) -> None:
    """Each request is smaller than the one before, and the end is the typed error, with the SDK's as its cause."""

    def same_numbers(_: int) -> tuple[int, Message]:
        return 400, {"error": {"message": "prompt is too long: 208380 tokens > 200000 maximum"}}

    messages = session(60, form=form)
    provider = Provider(form, window=-1, refuse=SILENT.get(said, same_numbers))
    with pytest.raises(WindowError) as caught:
        provider.asked(messages, budget)
    assert isinstance(caught.value.__cause__ or caught.value.__context__, (openai.APIError, anthropic.APIError))
    assert 2 <= len(provider.requests) <= 20
    assert provider.sizes == sorted(set(provider.sizes), reverse=True)


@pytest.mark.parametrize("form", FORMS)
def test_a_task_that_is_too_large_by_itself(form: Form) -> None:
    messages = session(3, form=form)
    at = next(index for index, message in enumerate(messages) if has_user_text(message))
    messages[at] = {**messages[at], "content": "Read this: " + str(messages[at]["content"]) * 2_000}
    provider = Provider(form)
    with pytest.raises(WindowError):
        provider.asked(messages, ContextBudget(None))
    assert len(provider.requests) <= 3


@pytest.mark.parametrize("form", FORMS)
def test_other_errors_are_not_retried(form: Form) -> None:
    """A broken list of the right size is refused for what it is."""
    messages = session(4, form=form)
    del messages[-1]
    provider = Provider(form)
    with pytest.raises((openai.BadRequestError, anthropic.BadRequestError)) as caught:
        provider.asked(messages, ContextBudget(200_000))
    assert classify_error(caught.value).kind == "invalid_history"
    assert len(provider.requests) == 1
