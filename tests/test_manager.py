"""`ContextManager`: a whole agent run offline, levels and events, refusals, summarisers that fail, stability, time."""

from __future__ import annotations

import asyncio
import dataclasses
import importlib.util
import json
import logging
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from cases import Message, pairing
from strategies import as_object

from ctxfast import (
    CannotFitError,
    CompactionPolicy,
    CompactReason,
    ContextBudget,
    ContextManager,
    ContextOverflowError,
    EstimatorConfig,
    Level,
    MessageTypeError,
    OutputStore,
    PrunePolicy,
    TokenCounter,
    events,
    validate,
)
from ctxfast.compaction import to_anthropic_context_management
from ctxfast.policy import FitPolicy

LENGTH = TokenCounter.from_callable(len, message_overhead=0)  # a token is a character
SYSTEM: Message = {"role": "system", "content": "Be careful."}
PRESETS = ("default", "careful", "thrifty", "seed", "opencode", "claude_code", "codex", "anthropic_api")
TASK: Message = {"role": "user", "content": "Mend the tests."}
DONE: Message = {"role": "assistant", "content": "Done."}


def load_example(name: str) -> ModuleType:
    path = Path(__file__).parent.parent / "examples" / f"{name}.py"
    spec = importlib.util.spec_from_file_location(name, path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


AGENT: Any = load_example("agent_loop")


def read(number: int, size: int, name: str = "read_file") -> list[Message]:
    """A step with an output of so many characters."""
    function = {"name": name, "arguments": json.dumps({"path": f"{number}.py"})}
    call = {"id": f"c{number}", "type": "function", "function": function}
    return [
        {"role": "assistant", "content": None, "tool_calls": [call]},
        {"role": "tool", "tool_call_id": f"c{number}", "content": (f"line {number}\n" * size)[:size]},
    ]


def steps(count: int, size: int = 1_000, first: int = 0, name: str = "read_file") -> list[Message]:
    return [message for number in range(first, first + count) for message in read(number, size, name)]


class Heard:
    """What happened."""

    def __init__(self) -> None:
        self.events: list[events.Event] = []

    def __call__(self, event: events.Event) -> None:
        self.events.append(event)

    @property
    def names(self) -> list[str]:
        return [type(event).__name__ for event in self.events]

    def last(self, kind: type[Any]) -> Any:
        return [event for event in self.events if isinstance(event, kind)][-1]


def managed(window: int, policy: CompactionPolicy | None = None, **options: Any) -> tuple[ContextManager, Heard]:
    """A manager with a window in characters, all of it for the prompt, without a margin but for 15 %."""
    heard = Heard()
    budget = ContextBudget(None, input_limit=window) if window else ContextBudget(None)
    options = {"counter": LENGTH, "on_event": heard, **options}
    return ContextManager(budget, policy, **options), heard


# ------------------------------------------------------------------------------------------------- a whole run


def said(prompt: str) -> str:
    """A summariser that is polite and obeys no form."""
    return "The agent makes modules faster. Keep Python 3.10 working."


SUMMARISERS: dict[str, Callable[[str], Any] | None] = {"none": None, "a model": said}


@pytest.mark.parametrize("summariser", SUMMARISERS)
@pytest.mark.parametrize("announced", [40_000, 0])
@pytest.mark.parametrize("says_why", [True, False])
@pytest.mark.parametrize("keep_all", [True, False])
def test_an_agent_of_500_steps(keep_all: bool, says_why: bool, announced: int, summariser: str) -> None:
    """No request is invalid (the provider checks), both recoveries happen, every level is met, and nothing is lost."""
    provider = AGENT.Provider(says_why=says_why)
    manager, provider, _, seen = AGENT.run(
        500, provider=provider, keep_all=keep_all, announced=announced, summarize=SUMMARISERS[summariser]
    )
    assert len(provider.requests) == 500
    assert 1 <= provider.refusals <= 3
    assert seen["LearnedWindow"] >= 1
    assert manager.budget.context_window <= 32_000
    assert seen["Pruned"] >= 5
    assert seen["Summarised"] >= 1
    assert seen["Suggested"] >= 1
    assert seen["Emergency"] >= 1
    # what users decided is in each request from then on
    for decision in AGENT.DECISIONS:
        first = next(at for at, sent in enumerate(provider.requests) if decision in json.dumps(sent))
        assert all(decision in json.dumps(sent) for sent in provider.requests[first:])
    # the cached prefix holds but for a few requests
    broken = sum(
        later[: len(before)] != before for before, later in zip(provider.requests, provider.requests[1:], strict=False)
    )
    assert broken <= 0.12 * 500


def test_every_output_can_be_found_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(AGENT, "mkdtemp", lambda: str(tmp_path / "outputs"))
    _, provider, history, _ = AGENT.run(300)
    saved = "\n".join(file.read_text(encoding="utf-8") for file in sorted((tmp_path / "outputs").iterdir()))
    last = json.dumps(provider.requests[-1])
    outputs = [message["content"] for message in history if message["role"] == "tool"]
    assert len(outputs) == 300
    for output in outputs[:-1]:  # the newest one was not sent yet
        as_json = json.dumps(output)[1:-1]
        assert output in saved or as_json in saved or as_json in last


def test_the_example_runs(capsys: pytest.CaptureFixture[str]) -> None:
    AGENT.main()
    shown = capsys.readouterr().out
    assert "refused" in shown
    assert "Summarised" in shown


# --------------------------------------------------------------------------------------------- levels and events


def test_what_fits_is_sent_as_it_is() -> None:
    manager, heard = managed(100_000)
    messages = [SYSTEM, TASK, *steps(3)]
    sent = manager.prepare(messages)
    assert sent == messages
    assert sent is not messages
    assert all(one is other for one, other in zip(sent, messages, strict=True))
    assert heard.events == []
    report = manager.last_report
    assert report is not None
    assert (report.level, report.changed, report.events) == (Level.NORMAL, False, ())
    assert report.before == report.used == LENGTH.messages(messages)
    assert manager.room() == 85_000 - report.used


def test_the_levels_are_told_of_once() -> None:
    policy = CompactionPolicy(auto="off")
    manager, heard = managed(10_000, policy)
    messages = [TASK]
    for number in range(10):
        messages += read(number, 960)
        manager.prepare(messages)
    assert heard.names == ["Detected", "Detected", "Warned", "Detected", "Suggested", "Detected"]
    detected = [event for event in heard.events if isinstance(event, events.Detected)]
    assert [(event.before, event.level) for event in detected] == [
        (Level.NORMAL, Level.PRUNE),
        (Level.PRUNE, Level.SUMMARIZE),
        (Level.SUMMARIZE, Level.URGENT),
        (Level.URGENT, Level.EMERGENCY),
    ]


def test_a_level_is_left_five_points_below_it() -> None:
    manager, heard = managed(10_000, CompactionPolicy(auto="off"))
    long, less, least = ([TASK, {"role": "assistant", "content": "x" * size}] for size in (6_100, 5_600, 5_400))
    for messages in (long, less, least):
        manager.prepare(messages)
    assert [(event.level, event.used) for event in heard.events] == [(Level.PRUNE, 6_115), (Level.NORMAL, 5_415)]


def test_old_outputs_go_when_that_pays() -> None:
    manager, heard = managed(400_000)
    messages = [TASK, *steps(100, 1_500)]
    sent = manager.prepare(messages)
    assert heard.names[0] == "Pruned"
    assert heard.last(events.Pruned).report.saved > 100_000
    assert len(sent) == len(messages)
    assert manager.prepare(messages) == sent  # and stay so
    later = [*messages, *steps(1, 1_500, first=100)]
    assert manager.prepare(later)[: len(sent)] == sent


def test_an_expired_cache_makes_any_saving_pay() -> None:
    now = [0.0]
    manager, heard = managed(400_000, clock=lambda: now[0])
    messages = [TASK, *steps(9, 3_000), {"role": "user", "content": "x" * 100_000}]
    now[0] = 60.0
    assert manager.prepare(messages) == messages
    now[0] = 7_200.0
    sent = manager.prepare([*messages, DONE])
    assert heard.last(events.Pruned).report.saved > 10_000
    assert validate(sent) == []


def test_or_only_from_a_level_on() -> None:
    policy = CompactionPolicy.seed()
    manager, heard = managed(400_000, CompactionPolicy(fit=policy.fit, prune_at="level"))
    messages = [TASK, *steps(100, 1_500), {"role": "assistant", "content": "Done."}, TASK, TASK]
    manager.prepare(messages)
    assert heard.events == []
    manager, heard = managed(250_000, CompactionPolicy(fit=policy.fit, prune_at="level"))
    manager.prepare(messages)
    assert "Pruned" in heard.names


def test_the_cache_does_not_expire_while_requests_are_made() -> None:
    """Also while nothing is pruned, because the level is not reached or the window not known."""
    now = [0.0]
    policy = CompactionPolicy(prune_at="level")
    manager, heard = managed(60_000, policy, clock=lambda: now[0])
    messages = [TASK, *steps(9, 3_000)]
    for number in range(20):
        now[0] += 600.0
        messages.append({"role": "assistant", "content": f"{number} " * 10})
        manager.prepare(messages)
    now[0] += 600.0
    messages.append({"role": "user", "content": "x" * 9_000})  # PRUNE, but 24,000 would have to be read anew
    manager.prepare(messages)
    assert heard.names == ["Detected"]


def test_a_note_where_the_messages_are_makes_nothing_larger() -> None:
    class Wordy:
        def save(self, text: str) -> str:
            return "a/very/long/name/" * 30

    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=600)
    manager, heard = managed(15_000, keep, store=Wordy())
    messages = [SYSTEM]
    for number in range(10):
        messages += [{"role": "user", "content": f"Question {number}."}, *[{**DONE, "content": "Done. " * 20}] * 2]
    messages += [{"role": "user", "content": "x" * (11_500 - LENGTH.messages(messages))}, DONE]
    sent = manager.prepare(messages)
    assert "Warned" in heard.names
    assert LENGTH.messages(sent) <= LENGTH.messages(messages)


def test_finished_tasks_become_a_few_lines() -> None:
    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=600)
    manager, heard = managed(20_000, keep)
    done = {"role": "assistant", "content": "All of it is mended now."}
    other = {"role": "user", "content": "Now the docs."}
    messages = [SYSTEM, TASK, *steps(15), done, other, *steps(1, 500, first=20)]
    sent = manager.prepare(messages)
    assert heard.last(events.Summarised).kind == "segments"
    assert sent[:2] == [SYSTEM, TASK]
    assert sent[2]["role"] == "assistant"
    assert len(sent[2]["content"].splitlines()) <= 3
    assert sent[3:] == messages[-4:]
    assert validate(sent) == []


def test_the_last_answer_stays_word_for_word() -> None:
    """It is in the tail, and the next question is about it."""
    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=2_000)
    manager, heard = managed(20_000, keep)
    findings = {"role": "assistant", "content": "I found three things. " * 50 + "The third: a race."}
    question = {"role": "user", "content": "Mend the third."}
    sent = manager.prepare([SYSTEM, TASK, *steps(15, name="my_tool"), findings, question])
    assert heard.last(events.Summarised).kind == "segments"
    assert sent[-2:] == [findings, question]
    assert len(sent) == 5


def test_small_tasks_are_condensed_in_batches() -> None:
    """Not one with each new task: that would be a new prefix each time."""
    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=600)
    manager, heard = managed(20_000, keep)
    messages = [SYSTEM, {"role": "user", "content": "x" * 14_000}, DONE]
    for number in range(9):
        messages += [{"role": "user", "content": f"Task {number}."}, *steps(1, 200, number), DONE]
        manager.prepare(messages)
    assert manager.last_report is not None
    assert manager.last_report.level == Level.SUMMARIZE
    assert "Summarised" not in heard.names
    messages += [TASK, *steps(1, 2_500, 50), TASK, DONE]  # together they pay
    sent = manager.prepare(messages)
    assert heard.last(events.Summarised).kind == "segments"
    assert len(sent) < len(messages) - 15


def test_all_but_the_tail_becomes_a_summary() -> None:
    manager, heard = managed(20_000, CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=3_000))
    messages = [SYSTEM, TASK, *steps(19, name="my_tool")]
    sent = manager.prepare(messages)
    assert heard.names[-2:] == ["Emergency", "Summarised"]
    summarised = heard.last(events.Summarised)
    assert summarised.kind == "deterministic"
    assert summarised.after < 10_000 < summarised.used
    assert sent[0] is SYSTEM
    assert any(message is TASK for message in sent)
    assert sent[-2:] == messages[-2:]
    assert "[Summary of the conversation so far]" in json.dumps(sent)
    assert validate(sent) == []
    assert manager.prepare([*messages, *steps(1, first=19)])[: len(sent)] == sent


@pytest.mark.parametrize("preset", PRESETS[:-1])  # the last one does not summarise
@pytest.mark.parametrize("margin", [0.15, 0.05])
def test_no_preset_drops_messages_where_it_can_summarise(preset: str, margin: float) -> None:
    """Work that grows step by step passes what is usable long before EMERGENCY, or the share of a preset."""
    never = FitPolicy(PrunePolicy(only_tools=()))
    policy = dataclasses.replace(getattr(CompactionPolicy, preset)(), fit=never, tail_tokens=3_000)
    heard = Heard()
    budget = ContextBudget(None, input_limit=40_000, safety_margin=margin)
    manager = ContextManager(budget, policy, counter=LENGTH, on_event=heard)
    for count in range(1, 60):
        sent = manager.prepare([SYSTEM, TASK, *steps(count, name="my_tool")])
        assert LENGTH.messages(sent) <= (budget.usable or 0)
    assert "Summarised" in heard.names
    assert "Fitted" not in heard.names


def test_what_matters_least_goes_at_urgent(tmp_path: Path) -> None:
    """Reads that nothing came of, here; what was changed or run stays, as a stub where that is shorter."""
    store = OutputStore(tmp_path / "outputs")
    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=3_000)
    manager, heard = managed(20_000, keep, store=store)
    messages = [SYSTEM, TASK, *steps(5, name="my_tool"), *steps(12, first=5)]
    sent = manager.prepare(messages)
    removed = heard.last(events.Removed)
    assert {part.reason for part in removed.parts} == {"exploration"}
    assert "Summarised" not in heard.names
    assert sent == [*messages[:12], *messages[12 + 2 * len(removed.parts) :]]
    assert validate(sent) == []
    assert len(list((tmp_path / "outputs").iterdir())) == 1


def test_a_running_call_stays_though_its_id_was_used_before() -> None:
    keep = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=1_500)
    manager, heard = managed(20_000, keep)
    messages = [TASK, *steps(17)]
    running = read(77, 5)[0]
    running["tool_calls"][0]["id"] = "c0"
    sent = manager.prepare([*messages, running])
    assert heard.last(events.Removed).parts
    assert sent[-1] is running


def test_a_compaction_can_be_asked_for() -> None:
    manager, heard = managed(400_000, CompactionPolicy(tail_tokens=2_000))
    messages = [TASK, *steps(30, 300)]
    assert manager.prepare(messages) == messages
    manager.request_compaction()
    sent = manager.prepare(messages)
    assert heard.last(events.Summarised).reason is CompactReason.PROACTIVE
    assert len(sent) < 20
    manager.request_compaction("llm_retry")
    manager.prepare([*messages, *steps(20, 300, first=30)])
    assert heard.last(events.Summarised).reason is CompactReason.RETRY


@pytest.mark.parametrize("compact_at", [None, 0.8])
def test_refills_are_told_of_and_end(compact_at: float | None) -> None:
    """Each step fills what the last compaction has freed."""
    never = FitPolicy(PrunePolicy(only_tools=()))
    prompts: list[str] = []

    def counts(prompt: str) -> str:
        prompts.append(prompt)
        return "The agent reads files."

    policy = CompactionPolicy(fit=never, tail_tokens=300, compact_at=compact_at, use_structured_summaries=False)
    manager, heard = managed(20_000, policy, summarize=counts)
    messages = [SYSTEM, TASK]
    for number in range(12):
        for small in range(2):
            messages += read(100 * number + small, 1_000, "my_tool")
        messages += read(number, 15_500, "my_tool")
        assert LENGTH.messages(manager.prepare(messages)) <= 17_000
    assert heard.names.count("NoProgress") == 1
    assert len(prompts) <= 4
    *largest, beside = heard.last(events.NoProgress).largest
    assert len(largest) == 3
    assert largest == sorted(largest, key=lambda item: -item[1])
    assert largest[0][1] > 15_000
    assert beside == ("what stands beside the messages (system, tools, unseen)", 0)
    manager.request_compaction()  # who asks is served
    manager.prepare(messages)
    assert heard.last(events.Summarised).reason is CompactReason.PROACTIVE
    done = heard.names.count("Summarised")
    for number in range(20, 120):
        messages += read(number, 800, "my_tool")
        manager.prepare(messages)
    assert heard.names.count("Summarised") > done
    assert heard.names.count("NoProgress") == 1


def test_after_so_many_calls() -> None:
    manager, heard = managed(400_000, CompactionPolicy(trigger_tool_calls=20, tail_tokens=2_000))
    for count in range(1, 45):
        manager.prepare([TASK, *steps(count, 300)])
    assert heard.names == ["Summarised", "Summarised"]


@pytest.mark.parametrize("auto", ["off", "prune"])
def test_auto_bounds_what_is_done(auto: Any) -> None:
    manager, heard = managed(20_000, CompactionPolicy(auto=auto))
    messages = [TASK, *steps(19)]
    sent = manager.prepare([*messages, *messages[2:3]])
    if auto == "off":
        assert sent == messages  # repaired, no more
    else:
        assert LENGTH.messages(sent) <= 17_000
    assert "Summarised" not in heard.names
    assert validate(sent) == []


def test_pins_and_state_are_in_every_summary(tmp_path: Path) -> None:
    phases = iter(["phase 1", "phase 2"])
    store = OutputStore(tmp_path / "outputs")
    manager, _ = managed(400_000, CompactionPolicy(tail_tokens=2_000), state=lambda: next(phases), store=store)
    manager.pin("Never touch vendor/.", kind="instruction")
    manager.pin("Never touch vendor/.", kind="instruction")
    manager.request_compaction()
    text = json.dumps(manager.prepare([TASK, *steps(30, 300)]))
    assert text.count("Never touch vendor/.") == 1
    assert "phase 1" in text
    manager.request_compaction()
    text = json.dumps(manager.prepare([TASK, *steps(60, 300)]))
    assert text.count("Never touch vendor/.") == 1
    assert "phase 2" in text
    assert "phase 1" not in text  # it is over
    assert text.count("saved as") == 1
    with pytest.raises(ValueError, match="text: expected something to keep"):
        manager.pin("  ")


def test_events_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    manager, _ = managed(20_000, CompactionPolicy(auto="off"))
    with caplog.at_level(logging.INFO, logger="ctxfast"):
        manager.prepare([TASK, *steps(19)])
    assert any("Detected" in record.message for record in caplog.records)


def test_what_a_listener_raises_comes_through() -> None:
    def refuse(event: events.Event) -> None:
        raise KeyError(type(event).__name__)

    manager, _ = managed(20_000, on_event=refuse)
    with pytest.raises(KeyError):
        manager.prepare([TASK, *steps(19)])


# ------------------------------------------------------------------------------------------- refusals and retries


class Refusal(Exception):
    def __init__(self, message: str, status: int = 400) -> None:
        super().__init__(message)
        self.status_code = status


TOO_LONG = "prompt is too long: {} tokens > {} maximum"


def test_a_window_is_learned_from_a_refusal() -> None:
    manager, heard = managed(0)
    messages = [TASK, *steps(40)]
    assert manager.prepare(messages) == messages
    assert manager.room() is None
    assert manager.handle_error(Refusal(TOO_LONG.format(42_000, 20_000)))
    learned = heard.last(events.LearnedWindow)
    assert (learned.before, learned.window) == (None, 20_000)
    sent = manager.prepare(messages)
    assert LENGTH.messages(sent) <= (manager.budget.usable or 0)
    assert heard.last(events.Summarised).reason is CompactReason.OVERFLOW


def test_what_is_no_overflow_is_left_to_the_caller() -> None:
    manager, heard = managed(100_000)
    manager.prepare([TASK, *steps(3)])
    for error in (
        Refusal("Rate limit reached for requests", 429),
        Refusal("You exceeded your current quota, please check your plan and billing details.", 429),
        Refusal("Incorrect API key provided", 401),
        TimeoutError(),
    ):
        assert not manager.handle_error(error)
    assert heard.events == []


def test_a_list_that_was_called_invalid_is_mended_once() -> None:
    manager, _ = managed(100_000)
    messages = [TASK, *steps(2)]
    manager.prepare(messages)
    error = Refusal("messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.")
    assert not manager.handle_error(error)  # nothing is wrong with it


@pytest.mark.parametrize("text", [TOO_LONG.format(99_999, 99_998), "Input is too long for requested model."])
def test_a_provider_that_refuses_everything_ends_in_a_typed_error(text: str) -> None:
    manager, _ = managed(100_000)
    messages = [SYSTEM, TASK, *steps(60)]
    sizes: list[int] = []

    def ask_for_ever() -> None:
        while len(sizes) < 10:
            sizes.append(LENGTH.messages(manager.prepare(messages)))
            manager.handle_error(Refusal(text))

    with pytest.raises((ContextOverflowError, CannotFitError)) as caught:
        ask_for_ever()
    assert sizes == sorted(sizes, reverse=True)
    if isinstance(caught.value, ContextOverflowError):
        assert caught.value.__cause__ is not None or caught.value.__context__ is not None


def test_what_cannot_fit_is_told_of_and_raised() -> None:
    manager, heard = managed(2_000)
    with pytest.raises(CannotFitError) as caught:
        manager.prepare([{"role": "user", "content": "x" * 3_000}])
    assert heard.last(events.CannotFit).error is caught.value


def test_a_floor_above_the_window_is_an_error_and_no_loop() -> None:
    """65,536 less 32,000 for the answer leave 33,536; what the provider adds unseen is 43,000."""
    manager, heard = managed(0)
    manager = ContextManager(ContextBudget(65_536, 32_000), counter=LENGTH, on_event=heard)
    messages = [TASK, *steps(4)]
    sent = manager.prepare(messages)
    manager.record_usage({"input_tokens": 43_000 + LENGTH.messages(sent), "output_tokens": 5})
    for _ in range(2):
        with pytest.raises(CannotFitError) as caught:
            manager.prepare([*messages, *steps(1, first=4)])
    assert caught.value.budget == manager.budget.usable
    assert caught.value.needed > 43_000
    assert len([event for event in heard.events if isinstance(event, events.Summarised)]) <= 2


@pytest.mark.parametrize("has_usage", [True, False])
def test_an_accepted_request_ends_the_retries(has_usage: bool) -> None:
    """So does an answer of a provider that gives no usage records."""
    manager, _ = managed(50_000, CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=2_000))
    messages, number = [TASK], 0
    for _ in range(7):
        while LENGTH.messages(sent := manager.prepare(messages)) < 0.76 * (manager.budget.hard or 0):
            messages = [*messages, *read(number, 500, "my_tool")]
            number += 1
        count = LENGTH.messages(sent)
        assert manager.handle_error(Refusal(TOO_LONG.format(count, count - 1)))
        sent = manager.prepare(messages)
        if has_usage:
            assert manager.record_usage({"input_tokens": LENGTH.messages(sent), "output_tokens": 5})


def test_a_refusal_says_how_large_the_prompt_was() -> None:
    """The window is not taken for smaller than it is said to be, where the estimate did not see all."""
    manager, _ = managed(200_000, CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=()))))
    messages = [TASK, *steps(100, name="my_tool")]
    unseen = 60_000
    manager.prepare(messages)  # no usage record
    messages = [*messages, *steps(45, name="my_tool", first=100)]
    sent = manager.prepare(messages)
    refused = LENGTH.messages(sent) + unseen
    assert manager.handle_error(Refusal(TOO_LONG.format(refused, 200_000)))
    assert manager.budget.hard == 200_000
    assert LENGTH.messages(manager.prepare(messages)) + unseen <= 200_000


# ------------------------------------------------------------------------------------------- summarisers that fail


def test_the_prompt_fits_the_window() -> None:
    sizes: list[int] = []

    def counts(prompt: str) -> str:
        sizes.append(len(prompt))
        return "The agent reads files."

    policy = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=3_000)
    manager, _ = managed(20_000, policy, summarize=counts)
    manager.prepare([SYSTEM, *[{**TASK, "content": "Mend the tests. " * 40}, DONE] * 100, *steps(8, name="my_tool")])
    assert sizes
    assert max(sizes) <= 17_000


def hangs(prompt: str) -> str:
    time.sleep(30)
    return "late"


def raises(prompt: str) -> str:
    raise ValueError("no model today")


async def is_async(prompt: str) -> str:
    await asyncio.sleep(0)
    return "The agent reads files."


FAULTS: dict[str, Callable[[str], Any]] = {
    "raises": raises,
    "hangs": hangs,
    "nothing": lambda prompt: "",
    "more than it got": lambda prompt: prompt * 3,
    "no text": lambda prompt: 5,
    "a coroutine": is_async,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("window", [20_000, 0])
def test_no_summariser_loses_anything(fault: str, window: int) -> None:
    policy = CompactionPolicy(fit=FitPolicy(PrunePolicy(only_tools=())), tail_tokens=3_000, summarize_timeout=0.2)
    manager, heard = managed(window, policy, summarize=FAULTS[fault])
    messages = [SYSTEM, TASK, *steps(19)]
    manager.request_compaction(CompactReason.OVERFLOW if window else CompactReason.RETRY)
    began = time.monotonic()
    sent = manager.prepare(messages)
    assert time.monotonic() - began < 10
    assert validate(sent) == []
    assert any(message is TASK for message in sent)
    assert sent[-2:] == messages[-2:]
    kind = heard.last(events.Summarised).kind
    assert kind == ("plain" if fault == "a coroutine" else "deterministic")


def test_async() -> None:
    async def work() -> list[Message]:
        policy = CompactionPolicy(tail_tokens=2_000)
        manager, heard = managed(400_000, policy, summarize=is_async)
        manager.request_compaction()
        sent = await manager.aprepare([TASK, *steps(30, 300)])
        assert heard.last(events.Summarised).kind == "plain"
        assert not await manager.ahandle_error(TimeoutError())
        return sent

    assert "The agent reads files." in json.dumps(asyncio.run(work()))


# ------------------------------------------------------------------------------------------------- lists and state


def test_both_ways_to_call_it_and_appending_are_the_same() -> None:
    managers = [managed(30_000, CompactionPolicy(tail_tokens=3_000))[0] for _ in range(3)]
    history: list[Message] = [SYSTEM]
    back: list[Message] = [SYSTEM]
    managers[2].append(SYSTEM)
    for number in range(120):
        new = [{"role": "user", "content": f"Task {number}."}] if number % 25 == 0 else []
        new += read(number, 100 + 37 * (number % 20))
        history += new
        back = [*back, *new]
        managers[2].append(*new)
        one = managers[0].prepare(history)
        back = managers[1].prepare(back)
        three: list[Message] = managers[2].prepare()
        assert one == back == three
        assert LENGTH.messages(one) <= 25_500
        assert validate(one) == []


def test_another_conversation_begins_anew() -> None:
    manager, _ = managed(20_000)
    manager.prepare([TASK, *steps(30)])
    other = [{"role": "user", "content": "Something else."}, *steps(2, first=50)]
    assert manager.prepare(other) == other
    edited = [TASK, *steps(1), *steps(2, 500, first=7)]
    assert manager.prepare(edited) == edited


def in_blocks(message: Message, *, marked: bool) -> Message:
    """With its text as a block, marked or not, as Anthropic's cache wants it."""
    mark = {"cache_control": {"type": "ephemeral"}} if marked else {}
    return {**message, "content": [{"type": "text", "text": message["content"], **mark}]}


@pytest.mark.parametrize("way", ["history", "returned"])
def test_marks_of_the_cache_move_on(way: str) -> None:
    """A caller that marks the newest message of each request goes on with the same conversation."""
    plain, _ = managed(20_000, CompactionPolicy(tail_tokens=2_000))
    manager, heard = managed(20_000, CompactionPolicy(tail_tokens=2_000))
    history, given, unmarked = [SYSTEM, TASK], [SYSTEM, TASK], [SYSTEM, TASK]
    sent: list[Message] = []
    for number in range(60):
        call, result = read(number, 900, "my_tool")
        history = [*history, call, result]
        expected = plain.prepare(history)
        unmarked = [*unmarked, call, in_blocks(result, marked=False)]
        if way == "history":
            given = [*unmarked[:-1], in_blocks(result, marked=True)]
        else:
            given = [*(sent or given), call, in_blocks(result, marked=True)]
        sent = manager.prepare(given)
        assert len(sent) == len(expected)
        assert json.dumps(sent).count("cache_control") <= (1 if way == "history" else number + 1)
        assert "cache_control" in sent[-1]["content"][0]
        if way == "returned":  # it is the caller who unmarks
            sent = [json.loads(json.dumps(one).replace(', "cache_control": {"type": "ephemeral"}', "")) for one in sent]
    assert heard.names.count("Pruned") < 15


def test_lists_with_faults_are_repaired() -> None:
    manager, _ = managed(100_000)
    messages = [TASK, *steps(2)]
    assert manager.prepare([*messages, messages[2]]) == messages
    broken_off = [*messages, read(9, 10)[0], {"role": "user", "content": "stop"}]
    sent = manager.prepare(broken_off)
    assert validate(sent) == []
    assert not pairing(sent).unanswered
    again = manager.prepare([*broken_off, *steps(1, first=10)])
    assert again[: len(sent)] == sent
    assert validate(again) == []


def test_what_is_appended_is_repaired_too() -> None:
    manager, heard = managed(100_000)
    manager.append(TASK, *steps(2))
    manager.prepare()
    manager.append(steps(1)[1])  # a result that came twice
    assert manager.prepare() == [TASK, *steps(2)]
    manager.append(read(9, 10)[0], {"role": "user", "content": "stop"})  # a call that was broken off
    sent: list[Message] = manager.prepare()
    assert validate(sent) == []
    assert not pairing(sent).unanswered
    assert heard.names == ["Mended", "Mended"]
    report = manager.last_report
    assert report is not None
    assert not report.changed  # nothing that was sent before
    manager.append(read(9, 10)[1])  # its result, too late: it takes the place of the note that there is none
    later: list[Message] = manager.prepare()
    assert validate(later) == []
    assert manager.last_report is not None
    assert manager.last_report.changed == (later[: len(sent)] != sent)


def test_a_response_in_several_messages_is_repaired_as_one() -> None:
    """The first of its calls never gets a result, which shows only when the conversation goes on."""
    manager, _ = managed(100_000)
    messages = [TASK, *steps(1), read(7, 5)[0]]
    for new in (steps(1, 5, 8), steps(1, 5, 9)):
        manager.prepare(messages)
        messages = [*messages, *new]
    sent = manager.prepare(messages)
    assert validate(sent) == []
    assert not pairing(sent).unanswered


def test_a_list_that_cannot_be_read_changes_nothing() -> None:
    manager, _ = managed(100_000)
    bad: Any = 5
    manager.prepare([TASK])
    for _ in range(2):
        with pytest.raises(MessageTypeError):
            manager.prepare([TASK, *steps(1), bad])
    assert manager.prepare([TASK, *steps(1)]) == [TASK, *steps(1)]
    with pytest.raises(MessageTypeError):
        manager.append(DONE, bad)
    assert manager.prepare() == [TASK, *steps(1)]
    with pytest.raises(MessageTypeError):
        manager.prepare([bad])
    assert manager.prepare([TASK, DONE]) == [TASK, DONE]


def test_objects_of_sdks() -> None:
    manager, _ = managed(20_000)
    messages = [as_object(message) for message in [TASK, *steps(19)]]
    sent = manager.prepare(messages)
    assert LENGTH.messages(sent) <= 17_000
    assert validate(sent) == []


def test_state_goes_on_elsewhere() -> None:
    policy = CompactionPolicy(tail_tokens=3_000)
    one, _ = managed(30_000, policy)
    history = [SYSTEM, TASK, *steps(60, 700)]
    one.pin("Never touch vendor/.")
    one.prepare(history)
    one.record_usage({"input_tokens": 25_000, "output_tokens": 7})
    other, _ = managed(30_000, policy)
    other.restore(json.loads(json.dumps(one.state())))
    history = [*history, *steps(5, 700, first=60)]
    assert one.prepare(history) == other.prepare(history)
    assert one.room() == other.room()
    with pytest.raises(ValueError, match="version: expected 1"):
        other.restore({"version": 2})


def test_state_has_all_that_is_under_way() -> None:
    """Between a request and its usage record, before a compaction that was asked for, after a refusal."""
    tools = [{"name": "read_file", "description": "x" * 3_000, "input_schema": {"type": "object"}}]

    def copy(manager: ContextManager) -> ContextManager:
        other, _ = managed(100_000, CompactionPolicy(tail_tokens=2_000))
        other.restore(json.loads(json.dumps(manager.state())))
        assert other.state() == manager.state()
        return other

    manager, _ = managed(100_000, CompactionPolicy(tail_tokens=2_000))
    messages = [SYSTEM, TASK, *steps(30)]
    manager.prepare(messages, system="s" * 500, tools=tools)
    for one in (other := copy(manager), manager):
        one.record_usage({"input_tokens": 40_000, "output_tokens": 5})
    assert manager.room() == other.room()
    manager.request_compaction()
    assert copy(manager).prepare(messages, system="s" * 500, tools=tools) == manager.prepare(
        messages, system="s" * 500, tools=tools
    )
    assert manager.handle_error(Refusal("Input is too long for requested model."))
    other = copy(manager)
    for one in (manager, other):
        with pytest.raises(ContextOverflowError):
            one.handle_error(Refusal("Input is too long for requested model."))
    before = other.state()
    with pytest.raises((TypeError, ValueError)):
        other.restore({**before, "pins": 5})
    with pytest.raises(MessageTypeError):
        other.restore({**before, "sent": [5]})
    assert other.state() == before


def test_system_and_tools_count() -> None:
    manager, _ = managed(100_000)
    messages = [TASK, *steps(3)]
    manager.prepare(messages)
    bare = manager.room()
    tools = [{"name": "read_file", "description": "x" * 1_000, "input_schema": {"type": "object"}}]
    manager.prepare(messages, system="y" * 500, tools=tools)
    room = manager.room()
    assert bare is not None
    assert room is not None
    assert bare - room == LENGTH.request({"messages": [], "system": "y" * 500, "tools": tools})


def test_for_a_model() -> None:
    manager = ContextManager.for_model("claude-sonnet-4-5", max_output_tokens=32_000)
    assert manager.budget == ContextBudget.for_model("claude-sonnet-4-5", max_output_tokens=32_000)
    assert manager.counter == TokenCounter.for_model("claude-sonnet-4-5")
    assert manager.prepare([TASK]) == [TASK]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"budget": 5}, "budget: expected a ContextBudget, got `int`"),
        ({"policy": PrunePolicy()}, "policy: expected a CompactionPolicy, got `PrunePolicy`"),
        ({"summarize": "gpt"}, "summarize: expected a function, got `str`"),
        ({"store": object()}, "store: expected something with a method save"),
        ({"on_event": 5}, "on_event: expected a function, got `int`"),
    ],
)
def test_arguments_of_another_kind(options: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=message):
        ContextManager(**{"budget": ContextBudget(1_000), **options})


@pytest.mark.parametrize("preset", PRESETS)
def test_a_policy_is_plain_data(preset: str) -> None:
    policy = getattr(CompactionPolicy, preset)()
    assert CompactionPolicy.from_dict(json.loads(json.dumps(policy.to_dict()))) == policy
    with pytest.raises(ValueError, match="version: expected 1"):
        CompactionPolicy.from_dict({**policy.to_dict(), "version": 2})


def test_what_anthropics_servers_can_do_of_a_policy() -> None:
    """Checked against the types of the `anthropic` package where it is there."""
    edits = {name: to_anthropic_context_management(getattr(CompactionPolicy, name)())["edits"] for name in PRESETS}
    assert edits["codex"] == []  # never prunes
    assert edits["anthropic_api"] == [
        {
            "type": "clear_tool_uses_20250919",
            "keep": {"type": "tool_uses", "value": 3},
            "clear_tool_inputs": False,
            "trigger": {"type": "input_tokens", "value": 100_000},
        }
    ]
    assert edits["opencode"][0]["clear_at_least"] == {"type": "input_tokens", "value": 20_000}
    assert edits["opencode"][0]["exclude_tools"] == ["skill"]
    types = pytest.importorskip("anthropic.types.beta")
    pydantic = pytest.importorskip("pydantic")
    adapter = pydantic.TypeAdapter(types.BetaContextManagementConfigParam)
    for edit in edits.values():
        adapter.validate_python({"edits": edit})


# ------------------------------------------------------------------------------------------------------ time


def median(run: Callable[[], object], times: int = 7) -> float:
    seconds = []
    for _ in range(times):
        began = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - began)
    return statistics.median(seconds)


def test_a_new_step_costs_little() -> None:
    """10,000 messages and one step more: not much more than to count them, and with `append` nearly nothing."""
    flat = TokenCounter.flat(EstimatorConfig())
    messages = [TASK, *steps(5_000, 400)]
    count = median(lambda: flat.messages(messages))
    manager, _ = managed(10**9, CompactionPolicy(auto="prune"), counter=flat)
    manager.prepare(messages)
    new = iter(range(10_000, 20_000))

    def prepare() -> None:
        messages.extend(read(next(new), 400))
        manager.prepare(messages)

    def append() -> None:
        manager.append(*read(next(new), 400))
        manager.prepare()

    def with_tools() -> None:
        manager.append(*read(next(new), 400))
        manager.prepare(tools=tools)

    assert median(prepare) < 6 * count  # the gate is 1.5: this must not fail on a busy machine
    bare = median(append, 21)
    assert bare < 0.002
    parameters = {"type": "object", "description": "x" * 200_000}
    tools = [{"type": "function", "function": {"name": "f", "parameters": parameters}} for _ in range(20)]
    manager.prepare(tools=tools)
    assert manager.record_usage({"input_tokens": flat.messages(messages, tools), "output_tokens": 5})
    assert median(with_tools, 21) < bare + 0.002  # the tools are not read again: that takes 20 ms
