"""Seeded transcripts with the shape of real agent sessions, as OpenAI chat dicts.

    make_transcript(1_000, storage="real", seed=1) -> list[dict]

Sizes, tool mix, parallel calls and string storage follow `profile.json`, which was measured on real sessions;
the text itself is made up (`texts.py`). Same arguments, same transcript. No dict and no text of a message is
shared with another one, because a walk over shared objects would be faster than any real one.

Without `oddities` every list is a valid request: all calls are answered, the last message is an answer.
"""

from __future__ import annotations

import json
import math
from pathlib import Path
from random import Random
from statistics import NormalDist
from typing import Any, Literal

from benches.texts import FOLDERS, a_name, a_path, corpus

Message = dict[str, Any]
Storage = Literal["ascii", "real", "ucs2"]
Shape = Literal["claude", "codex", "opencode"]

PROFILE: dict[str, Any] = json.loads((Path(__file__).parent / "profile.json").read_text(encoding="utf-8"))
NORMAL = NormalDist()
RECENT_SEED = 44  # 11 messages fit 8,000 tokens; the head of the cut turn is 8 messages before them


def _mark(text: str, character: str) -> str:
    """`text`, with its last character replaced: one is enough to change how CPython stores a string."""
    return text[:-1] + character


class _Writer:
    """The state of one transcript: a stream of random numbers per field, and what later calls refer to."""

    def __init__(self, storage: Storage, seed: int) -> None:
        self.storage = storage
        self.sizes = Random(f"{seed}/sizes")
        self.places = Random(f"{seed}/places")
        self.kinds = Random(f"{seed}/kinds")
        self.plan = Random(f"{seed}/plan")
        self.ids = Random(f"{seed}/ids")
        self.paths: list[str] = []
        self.previous_call: tuple[str, str, list[Any]] | None = None

    def size(self, ln_mu: float, ln_sd: float, low: int, high: int) -> int:
        deviate = NORMAL.inv_cdf(self.sizes.random() * (1 - 2e-12) + 1e-12)
        return max(low, min(high, round(math.exp(ln_mu + ln_sd * deviate))))

    def sized(self, field: dict[str, Any]) -> int:
        return self.size(field["ln_mu"], field["ln_sd"], *field["clip"])

    def kind(self, shape: str, role: str, chars: int) -> str:
        if self.storage != "real":
            return self.storage
        draw = self.kinds.random()
        reference, exponent = PROFILE["ucs2_growth"][shape]
        for name, share in PROFILE["string_kinds"][shape][role].items():
            if name == "ascii":
                continue
            draw -= min(0.97, share * (chars / reference) ** exponent) if name == "ucs2" else share
            if draw < 0:
                return str(name)
        return "ascii"

    def text(self, shape: str, role: str, kind: str, chars: int) -> str:
        storage = self.kind(shape, role, chars)
        source, starts = corpus(kind, ornate=storage in ("ucs2", "ucs4"))
        start = min(starts[int(self.places.random() * len(starts))], len(source) - chars)
        text = source[start : start + chars]
        if storage == "ucs4":
            return _mark(text, "\U0001f389")
        if storage == "latin1":
            return _mark(text, "é")
        if storage == "ucs2" and text.isascii():
            return _mark(text, "✓")
        return text

    def call(self, shape: str) -> tuple[str, str, list[Any]]:
        """A tool call: name, arguments as a JSON string, and the row of the tool in the profile."""
        profile = PROFILE[shape]
        if self.previous_call and self.plan.random() < profile["repeat_same_call"]:
            name, arguments, tool = self.previous_call
            if tool in profile["tools"]:
                return name, arguments[:1] + arguments[1:], tool
        draw = self.plan.random()
        tool = profile["tools"][-1]
        for row in profile["tools"]:
            draw -= row[1]
            if draw < 0:
                tool = row
                break
        name, kind = str(tool[0]), tool[5]
        chars = self.sized(profile["args_chars"])
        if kind == "log":
            fields: dict[str, Any] = {"command": "", "description": a_name(self.plan)}
        elif kind in ("prose", "json"):
            fields = {"prompt": ""}
        elif kind == "paths":
            fields = {"path": self.plan.choice(FOLDERS), "pattern": ""}
        else:
            fields = {"file_path": self.path(profile["read_path_reused_later"])}
            if kind == "code":
                fields |= {"offset": self.plan.randrange(1, 2000), "limit": 200, "note": ""}
            else:
                fields |= {"old_string": a_name(self.plan), "new_string": ""}
        filler = next(key for key, value in fields.items() if value == "")
        room = chars - len(json.dumps(fields))
        if room > 0:
            filling = "short" if kind in ("short", "code") else "log"
            fields[filler] = self.text(shape, "assistant", filling, room)
        elif self.storage == "ucs2":
            fields[filler] = "→"
        arguments = json.dumps(fields, ensure_ascii=False)
        self.previous_call = (name, arguments, tool)
        return self.previous_call

    def path(self, reuse: float) -> str:
        if self.paths and self.plan.random() < reuse:
            return self.plan.choice(self.paths[-20:])
        self.paths.append(a_path(self.plan))
        return self.paths[-1]

    def identifier(self, shape: str) -> str:
        prefix = {"claude": "toolu_01", "codex": "call_", "opencode": "call_00_"}[shape]
        return f"{prefix}{self.ids.getrandbits(88):022x}"

    def steps(self, shape: str) -> int:
        profile = PROFILE[shape]["steps_per_turn"]
        draw = self.plan.random()
        mean: float = profile["mix"][0][1] if draw < profile["mix"][0][0] else profile["mix"][-1][1]
        geometric = 1 + int(math.log(1 - self.plan.random()) / math.log(1 - 1 / mean))
        return min(geometric, int(profile["max"]))

    def calls(self, shape: str) -> int:
        shares = {int(k): v for k, v in PROFILE[shape]["calls_per_step"].items() if k != "0"}
        draw = self.plan.random() * sum(shares.values())
        for number, share in shares.items():
            draw -= share
            if draw < 0:
                return number
        return 1

    def content(self, shape: str, text: str) -> Any:
        """Codex sessions send user and assistant text as a list of parts."""
        return [{"type": "text", "text": text}] if shape == "codex" else text

    def system(self) -> Message:
        return {"role": "system", "content": self.text("claude", "user", "prose", 6_000)}

    def user(self, shape: str) -> Message:
        text = self.text(shape, "user", "prose", self.sized(PROFILE[shape]["user_chars"]))
        return {"role": "user", "content": self.content(shape, text)}

    def step(self, shape: str, calls: int) -> list[Message]:
        """One assistant message with `calls` calls and their results; without calls it is an answer."""
        profile = PROFILE[shape]
        message: Message = {"role": "assistant", "content": None}
        # `zero` counts all steps, and those that end a turn always have text.
        zero = profile["assistant_chars"]["zero"] / (1 - profile["calls_per_step"]["0"])
        if calls == 0 or self.plan.random() >= zero:
            text = self.text(shape, "assistant", "prose", self.sized(profile["assistant_chars"]))
            message["content"] = self.content(shape, text)
        if self.plan.random() >= profile["reasoning_chars"]["zero"]:
            chars = self.sized(profile["reasoning_chars"])
            message["reasoning_content"] = self.text(shape, "assistant", "prose", chars)
        messages = [message]
        if calls:
            message["tool_calls"] = []
        for _ in range(calls):
            name, arguments, tool = self.call(shape)
            identifier = self.identifier(shape)
            function = {"name": name, "arguments": arguments}
            message["tool_calls"].append({"id": identifier, "type": "function", "function": function})
            result = self.text(shape, "tool", tool[5], self.size(tool[2], tool[3], 1, tool[4]))
            # As after a round trip through JSON: the id is equal to the call's, and another object.
            copy = identifier[:1] + identifier[1:]
            messages.append({"role": "tool", "tool_call_id": copy, "content": result})
        return messages


def make_transcript(
    n_messages: int,
    *,
    storage: Storage = "ascii",
    seed: int = 1,
    oddities: bool = False,
    shape: Shape | None = None,
    one_turn: bool = False,
) -> list[Message]:
    """A transcript of exactly `n_messages`: a system message, then turns of the three session shapes.

    `storage` is how CPython stores the texts and call arguments: "ascii" none of them has a non-ASCII
    character, "ucs2" each one has, "real" as measured. `shape` keeps to one kind of session instead of the
    measured mix: in the Claude shape 70 % of the characters are in non-ASCII strings, in the mix 25 %, as
    OpenCode's long reads are ASCII. `one_turn`: a single user message and then nothing but tool steps.
    `oddities` adds the faults of real logs, see `_add_oddities`.
    """
    writer = _Writer(storage, seed)
    shares = {shape: 1.0} if shape else PROFILE["shapes"]
    shapes, weights = list(shares), list(shares.values())
    messages = [writer.system()][:n_messages]
    while len(messages) < n_messages:
        session = writer.plan.choices(shapes, weights)[0]
        messages.append(writer.user(session))
        for left in reversed(range(n_messages if one_turn else writer.steps(session))):
            room = n_messages - len(messages)
            if room == 0:
                break
            # The last step of a turn answers; so does a step for which no result would fit any more.
            calls = min(writer.calls(session), room - 1) if left else 0
            messages += writer.step(session, calls)
    return _add_oddities(messages, writer, seed) if oddities else messages


def _add_oddities(messages: list[Message], writer: _Writer, seed: int) -> list[Message]:
    """Change results as often as real logs do, each kind at least once if there are 36 results.

    The kinds: error, empty, ANSI colours, CRLF, NUL, U+FFFD, long lines, an inline image, a missing result, a
    user message between call and result, an orphan result at the start. The number of messages stays: the end
    is cut, possibly inside a step, or filled up.
    """
    rng = Random(f"{seed}/oddities")
    size = len(messages)
    rates = list(PROFILE["oddities_per_tool_result"].items())
    out: list[Message] = []
    seen = 0
    for message in messages:
        if message["role"] != "tool":
            out.append(message)
            continue
        draw = rng.random()
        odd = rates[seen // 3][0] if seen % 3 == 2 and seen // 3 < len(rates) else ""
        for name, rate in rates if not odd else []:
            draw -= rate
            if draw < 0:
                odd = name
                break
        seen += 1
        if seen == 32 or rng.random() < PROFILE["oddities_per_call"]["no_result_in_the_middle"]:
            continue
        if seen == 35 or rng.random() < PROFILE["oddities_per_call"]["user_message_between_call_and_result"]:
            out.append(writer.user("claude"))
        out.append(message | {"content": _odd_content(odd, message["content"])})
    text = writer.text("claude", "tool", "log", 80)
    out.insert(1, {"role": "tool", "tool_call_id": writer.identifier("claude"), "content": text})
    while len(out) < size:
        out += writer.step("claude", 0)
    return out[:size]


def _odd_content(odd: str, text: str) -> Any:
    if odd == "error":
        return f"Error: exit code 1\n{text}"
    if odd == "empty":
        return ""
    if odd == "ansi":
        return "\n".join(f"\x1b[32m{line}\x1b[0m" for line in text.split("\n"))
    if odd == "crlf":
        return text.replace("\n", "\r\n")
    if odd == "nul":
        return text[:40] + "\0" + text[40:]
    if odd == "u_fffd":
        return text[:40] + "\ufffd" + text[40:]
    if odd in ("line_over_2000", "line_over_20000"):
        return (text.replace("\n", " ") + " ") * (int(odd[10:]) // (len(text) + 1) + 2)
    if odd == "inline_image":
        url = "data:image/png;base64," + "iVBORw0KGgoAAAANSUhEUgAA" * 500
        return [{"type": "text", "text": text}, {"type": "image_url", "image_url": {"url": url}}]
    return text


def with_recent_turns(messages: list[Message]) -> list[Message]:
    """The transcript, ended by the same 60 messages of several turns whatever came before.

    A tail of 8,000 tokens lies inside those 60, with the newest user message and the head of the cut turn.
    """
    return [*messages, *make_transcript(61, storage="real", seed=RECENT_SEED, shape="claude")[1:]]


def from_json_lines(messages: list[Message]) -> list[Message]:
    """The transcript as read from a log: keys and role names equal the literals, but are other objects."""
    return [json.loads(json.dumps(message)) for message in messages]
