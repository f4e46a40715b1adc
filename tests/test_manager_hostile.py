"""`ContextManager` under everything that callers, providers, summarisers and stores do to it, at random: invariants.

A `Life` is a conversation of some rounds from one seed. After each `prepare` what must hold is checked, by means that
share nothing with the manager (`cases`).
"""

from __future__ import annotations

import asyncio
import copy
import json
import random
import threading
import time
from collections.abc import Callable
from typing import Any

import pytest
from cases import Message
from strategies import as_object

from ctxfast import (
    CannotFitError,
    CompactionPolicy,
    ContextBudget,
    ContextManager,
    ContextOverflowError,
    TokenCounter,
    events,
    validate,
)

LENGTH = TokenCounter.from_callable(len, message_overhead=0)  # a token is a character
PRESETS = ("default", "careful", "thrifty", "seed", "opencode", "claude_code", "codex", "anthropic_api")
TOOLS = ("read_file", "bash", "grep", "glob", "edit_file", "ask_user", "web_fetch", "my_tool", "Task")


class Boom(Exception):
    """What a listener, a store or a state of the caller's raises."""


class Refusal(Exception):
    def __init__(self, message: str) -> None:
        super().__init__(message)
        self.status_code = 400


# ---------------------------------------------------------------------------------- what is called by the manager


def no_answer(prompt: str) -> str:
    raise ValueError("no model today")


async def in_a_while(prompt: str) -> str:
    await asyncio.sleep(0)
    return "The agent works."


def late(prompt: str) -> str:
    time.sleep(0.05)
    return "late"


SUMMARISERS: tuple[Callable[[str], Any] | None, ...] = (
    None,
    no_answer,
    late,
    in_a_while,
    lambda prompt: "",
    lambda prompt: prompt * 2,
    lambda prompt: 5,
    lambda prompt: "The agent works on modules.",
    lambda prompt: "## Goal\n[Summary of the conversation so far]\n[End of the summary]\n\nPinned:\n- nothing",
)


class Store:
    """Keeps all, or gives `None`, or raises, now and then."""

    def __init__(self, dice: random.Random, mood: str) -> None:
        self.dice, self.mood, self.kept = dice, mood, [""]

    def save(self, text: str) -> str | None:
        if self.mood == "full" or (self.mood == "moody" and self.dice.random() < 0.2):
            return None
        if self.mood == "broken" and self.dice.random() < 0.2:
            raise Boom("disk")
        self.kept.append(text)
        return f"saved-{len(self.kept)}"


# ------------------------------------------------------------------------------------------------ what is said


class Talk:
    """Makes messages of one form; every user's words have a mark of their own."""

    def __init__(self, dice: random.Random, form: str) -> None:
        self.dice, self.form, self.count = dice, form, 0
        self.marks: list[str] = []

    def user(self) -> Message:
        self.count += 1
        mark = f"<{self.count}>"
        self.marks.append(mark)
        text = f"{mark} Mend the tests of module {self.count}. " + "Please. " * self.dice.choice([0, 0, 3, 60])
        return {"role": "user", "content": text if self.dice.random() < 0.7 else [{"type": "text", "text": text}]}

    def answer(self) -> Message:
        text = "I did it. " * self.dice.randrange(1, 12)
        return {"role": "assistant", "content": text if self.form == "openai" else [{"type": "text", "text": text}]}

    def output(self) -> str:
        line = self.dice.choice(["line {}", "error: {} failed", "a.py:{}: x = 1", "ไทย {}", "Exit code: {}"])
        size = int(10 ** self.dice.uniform(0, 2.2)) * (20 if self.dice.random() < 0.03 else 1)
        return "\n".join(line.format(number) for number in range(size))

    def step(self) -> list[Message]:
        """A response with one to three calls, and their results in some order."""
        calls = []
        for _ in range(self.dice.choice([1, 1, 1, 2, 3])):
            self.count += 1
            path = f"src/m{self.dice.randrange(8)}.py"
            name = self.dice.choice(TOOLS)
            arguments = {"path": path} if name != "bash" else {"command": f"pytest -q {path}"}
            calls.append((f"c{self.count}", name, arguments))
        results = [(call_id, self.output()) for call_id, _, _ in calls]
        form = self.form if self.form != "mixed" else self.dice.choice(["openai", "anthropic"])
        if form == "anthropic":
            uses = [{"type": "tool_use", "id": i, "name": name, "input": fields} for i, name, fields in calls]
            back = [{"type": "tool_result", "tool_use_id": i, "content": text} for i, text in results]
            return [
                {"role": "assistant", "content": [{"type": "text", "text": "I look."}, *uses]},
                {"role": "user", "content": back},
            ]
        functions = [
            {"id": i, "type": "function", "function": {"name": name, "arguments": json.dumps(fields)}}
            for i, name, fields in calls
        ]
        self.dice.shuffle(results)
        return [
            {"role": "assistant", "content": self.dice.choice([None, "I look."]), "tool_calls": functions},
            *({"role": "tool", "tool_call_id": i, "content": text} for i, text in results),
        ]


# ------------------------------------------------------------------------------------------------------ a life


class Life:
    """One conversation, with whatever happens in it."""

    def __init__(self, seed: int, **fixed: Any) -> None:
        self.dice = dice = random.Random(seed)
        self.form = fixed.get("form") or dice.choice(["openai", "openai", "anthropic", "mixed"])
        self.is_object = self.form == "openai" and dice.random() < 0.15
        self.talk = Talk(dice, self.form)
        policy = getattr(CompactionPolicy, dice.choice(PRESETS))()
        changes: Message = {"summarize_timeout": 0.02}
        if dice.random() < 0.5:
            changes["tail_tokens"] = dice.choice([200, 1_000, 5_000])
        if dice.random() < 0.2:
            changes["auto"] = dice.choice(["prune", "all"])
        if dice.random() < 0.3:
            changes["compact_at"] = dice.choice([0.3, 0.7, 1.0])
        self.policy = CompactionPolicy(**{**vars(policy), **changes})
        self.summarize = dice.choice(SUMMARISERS)
        moods = ["good", "good", "full", "moody", "broken"]
        self.store = None if dice.random() < 0.3 else Store(dice, dice.choice(moods))
        self.events: list[events.Event] = []
        self.is_calm = dice.random() < 0.8  # the listener; else it raises now and then
        self.window = dice.choice([6_000, 15_000, 40_000, 150_000])
        announced = dice.choice([self.window, self.window, 2 * self.window, None])
        self.budget = ContextBudget(announced, 500, safety_margin=dice.choice([0.15, 0.05]))
        self.rate, self.unseen = dice.choice([0.8, 1.0, 1.3]), dice.choice([0, 0, 700])
        self.way = dice.choice(["history", "returned", "append"])
        self.manager = self.new_manager()
        first = [] if self.form == "anthropic" else [{"role": "system", "content": "Be careful."}]
        self.given: list[Any] = [self.wrapped(message) for message in first]
        self.system: Any = None
        self.tools: Any = None
        self.sent: list[Any] = []
        self.pins: list[str] = []
        self.all: list[Any] = list(self.given)  # whatever was said
        self.live: list[Any] = []  # calls that are still running
        self.appended = 0

    def new_manager(self) -> ContextManager:
        return ContextManager(
            self.budget,
            self.policy,
            summarize=self.summarize,
            store=self.store,
            counter=LENGTH,
            on_event=self.hear,
            state=None if self.dice.random() < 0.8 else lambda: "phase 1",
        )

    def hear(self, event: events.Event) -> None:
        if not self.is_calm and self.dice.random() < 0.2:
            raise Boom(type(event).__name__)
        self.events.append(event)

    def wrapped(self, message: Message) -> Any:
        return as_object(message) if self.is_object else message

    def say(self, *messages: Message) -> None:
        new = [self.wrapped(message) for message in messages]
        self.given = [*self.given, *new]
        self.all += new

    def prepare(self) -> list[Any]:
        """`prepare` in this life's way, with all checks."""
        frozen = copy.deepcopy(self.given)
        options = {"system": self.system, "tools": self.tools}
        heard = len(self.events)
        is_async = self.dice.random() < 0.1
        if self.way == "append":
            self.manager.append(*self.given[self.appended :])
            self.appended = len(self.given)
            sent = asyncio.run(self.manager.aprepare(**options)) if is_async else self.manager.prepare(**options)
        elif is_async:
            sent = asyncio.run(self.manager.aprepare(self.given, **options))
        else:
            sent = self.manager.prepare(self.given, **options)
        assert self.given == frozen  # nothing is changed in place
        self.check(sent, heard)
        self.sent = sent
        if self.way == "returned":
            self.given = list(sent)
        return sent

    def check(self, sent: list[Any], heard: int) -> None:
        manager, report = self.manager, self.manager.last_report
        assert report is not None
        fine = {"no_user_message", "unknown_role"} if self.form == "mixed" else {"no_user_message"}  # system messages
        is_live = self.all[-1] in self.live
        faults = [fault for fault in validate(sent, manager._wire) if fault.code not in fine]
        assert all(fault.code == "unanswered_call" and fault.index == len(sent) - 1 and is_live for fault in faults)
        assert report.used == manager._used()
        if manager.budget.usable is not None and self.policy.auto != "off":
            assert report.used <= manager.budget.usable
        room = manager.room()
        assert room is None or room == max((manager.budget.usable or 0) - report.used, 0)
        text = self.text_of(sent)
        if self.talk.marks:
            assert self.talk.marks[-1] in text  # the task
        assert self.form == "anthropic" or "Be careful." in text
        new = self.events[heard:]
        kinds = {type(event).__name__ for event in new}
        is_new = any(isinstance(event, events.Summarised) and event.kind != "segments" for event in new)
        if is_new and "Fitted" not in kinds:
            assert all(pin in text for pin in self.pins)
        changes = {"Pruned", "Removed", "Summarised", "Fitted", "Mended"}
        if not changes & kinds:
            assert sent[: len(self.sent)] == self.sent
            assert not report.changed
        elif sent[: len(self.sent)] != self.sent:
            assert report.changed
        if self.store is not None and self.store.mood == "good":
            kept = text + "".join(self.store.kept)
            for mark in self.talk.marks:
                assert mark in kept

    def text_of(self, messages: list[Any]) -> str:
        return json.dumps([vars(one) if not isinstance(one, dict) else one for one in messages], default=vars)

    def again(self) -> None:
        """The same call once more costs and changes nothing."""
        heard, sent = len(self.events), self.sent
        if self.prepare() != sent:
            raise AssertionError([type(event).__name__ for event in self.events[heard:]])
        assert all(isinstance(event, (events.Detected, events.Warned)) for event in self.events[heard:])

    def request(self) -> None:
        """One request with its refusals and its usage record."""
        for _ in range(12):
            sent = self.prepare()
            if self.dice.random() < 0.3:
                self.again()
            prompt = round(LENGTH.request({"messages": sent, "system": self.system, "tools": self.tools}) * self.rate)
            prompt += self.unseen
            if prompt + 500 <= self.window:
                break
            said = [f"prompt is too long: {prompt} tokens > {self.window - 500} maximum"]
            said.append("Input is too long for requested model.")
            if not self.manager.handle_error(Refusal(self.dice.choice(said))):
                raise AssertionError("not understood")
        else:
            raise AssertionError("an endless loop")
        record: Any = {"input_tokens": prompt, "output_tokens": 20}
        luck = self.dice.random()
        if luck < 0.1:
            record = {"input_tokens": prompt * 30, "output_tokens": 20}
        elif luck < 0.15:
            record = {"input_tokens": 3, "output_tokens": 20}
        if luck < 0.8:
            self.manager.record_usage(record)

    def round(self) -> None:
        dice = self.dice
        if not self.talk.marks or dice.random() < 0.12:
            self.say(self.talk.user())
        for _ in range(dice.choice([0, 1, 1, 2, 6])):
            self.say(*self.talk.step())
        luck = dice.random()
        if luck < 0.1:
            self.say(self.talk.answer())
        elif luck < 0.14:  # a call that was broken off
            step = self.talk.step()
            self.say(step[0], self.talk.user(), *(step[1:] if dice.random() < 0.5 else []))
        elif luck < 0.18:
            self.manager.pin(pin := f"Pin {dice.randrange(9)}: never touch vendor/.")
            self.pins.append(pin)
        elif luck < 0.22:
            self.manager.request_compaction()
        elif luck < 0.25:
            self.system = dice.choice([None, "You are careful. " * 20])
            self.tools = dice.choice([None, [{"name": "bash", "description": "runs " * 50, "input_schema": {}}]])
        elif luck < 0.27:
            state = self.manager.state()
            self.manager = self.new_manager()
            self.manager.restore(state if self.is_object else json.loads(json.dumps(state)))
        elif luck < 0.28:  # another model
            window = dice.choice([6_000, 15_000, 40_000, 150_000])
            self.budget = self.manager.budget = ContextBudget(window, 500)
            self.window = max(window, self.window)
        elif luck < 0.30:
            assert not self.manager.handle_error(dice.choice([TimeoutError(), Refusal("Rate limit reached"), None, 5]))
        elif luck < 0.32:
            self.say(self.talk.step()[0])  # it is still running, and has no results when the next round comes
            self.live.append(self.all[-1])
        try:
            self.request()
        except (CannotFitError, ContextOverflowError, Boom):
            # the caller goes on as it can; the manager must be usable
            self.sent = []
            self.manager._changed = False  # what was sent last is not compared any more
            self.given = self.given if self.way != "returned" else [*self.given]


@pytest.mark.parametrize("seed", [*range(150), 1416])  # the last one: a summary of nearly nothing
def test_a_life(seed: int) -> None:
    life = Life(seed)
    for _ in range(25):
        life.round()


def events_of(manager: ContextManager) -> list[str]:
    assert manager.last_report is not None
    return [type(event).__name__ for event in manager.last_report.events]


@pytest.mark.parametrize("seed", range(30))
def test_a_state_goes_on_as_the_manager_does(seed: int) -> None:
    """At any point, through JSON: the same lists, events and rooms from then on."""
    dice = random.Random(seed)
    talk = Talk(dice, dice.choice(["openai", "anthropic"]))
    policy = getattr(CompactionPolicy, dice.choice(PRESETS))()
    budget = ContextBudget(dice.choice([8_000, 30_000]), 500)
    now = [0.0]

    def new() -> ContextManager:
        return ContextManager(budget, policy, counter=LENGTH, clock=lambda: now[0])

    manager, other = new(), new()
    messages = [talk.user()]
    for _ in range(60):
        messages = [*messages, *(talk.step() if dice.random() < 0.9 else [talk.answer(), talk.user()])]
        act = dice.random()
        try:
            sent = manager.prepare(messages)
        except CannotFitError:
            with pytest.raises(CannotFitError):
                other.prepare(messages)
            messages = [talk.user()]
            continue
        assert other.prepare(messages) == sent
        assert events_of(other) == events_of(manager)
        used = LENGTH.messages(sent) + 300
        for one in (manager, other):
            if act < 0.8:
                one.record_usage({"input_tokens": used, "output_tokens": 5})
            elif act < 0.85:
                one.request_compaction()
            elif act < 0.9:
                one.pin(f"pin {act}")
        assert manager.room() == other.room()
        if dice.random() < 0.3:
            state = json.loads(json.dumps(manager.state()))
            other = new()
            other.restore(state)


def test_managers_in_threads_do_not_meet() -> None:
    expected = [run_alone(seed) for seed in range(4)]
    found: list[Any] = [None] * 4

    def work(seed: int) -> None:
        found[seed] = run_alone(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == expected


def run_alone(seed: int) -> list[list[Message]]:
    talk = Talk(random.Random(seed), "openai")
    manager = ContextManager(ContextBudget(12_000, 500), counter=LENGTH)
    messages, sent = [talk.user()], []
    for _ in range(60):
        messages = [*messages, *talk.step()]
        sent.append(manager.prepare(messages))
    return sent


class Once:
    """Raises at the n-th call, of whatever kind, and never again."""

    def __init__(self, at: int) -> None:
        self.at = at

    def __call__(self, *_: object) -> str:
        self.at -= 1
        if self.at == 0:
            raise Boom
        return "phase 1"

    def save(self, text: str) -> str:
        self()
        return f"saved-{len(text)}"


@pytest.mark.parametrize("at", range(1, 9))
@pytest.mark.parametrize("who", ["on_event", "store", "state", "all"])
@pytest.mark.parametrize("size", [17_000, 30_000])
def test_a_prepare_that_fails_leaves_the_manager_usable(size: int, who: str, at: int) -> None:
    """The next one gives a list that fits; and nobody has lost what was said."""
    talk = Talk(random.Random(5), "openai")
    messages = [talk.user(), *talk.step(), talk.answer(), talk.user()]
    while LENGTH.messages(messages) < size:
        messages += talk.step()
    messages += [talk.answer(), talk.user()]
    once = Once(at)
    options: Any = {name: once for name in ("on_event", "store", "state") if who in (name, "all")}
    manager = ContextManager(ContextBudget(20_000, 500), CompactionPolicy(tail_tokens=900), counter=LENGTH, **options)
    failed = False
    try:
        manager.prepare(messages)
    except Boom:
        failed = True
    sent = manager.prepare(messages)
    assert validate(sent) == []
    assert manager.last_report is not None
    assert manager.last_report.used <= (manager.budget.usable or 0)
    assert talk.marks[-1] in json.dumps(sent)
    assert sent[-1] == messages[-1]
    assert manager.prepare(messages) == sent
    assert failed or once.at > 0
