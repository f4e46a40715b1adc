"""Sessions of Claude Code (`~/.claude/projects/*/*.jsonl`) and the output of `claude -p --output-format stream-json`.

One record a line, most of them no messages. Those that are differ from what was sent:

- one response is split over several lines that share `message.id`, with the results of parallel calls in between: it
  becomes one assistant message, and all results of its calls one user message behind it;
- what the client adds (`isMeta`: a skill's text, say) goes into the user message before it;
- what the user typed while a tool ran is kept as an attachment: it becomes a user message;
- API errors are shown to the user as the model's words and never sent: they are left out;
- sub-agents (`isSidechain`, `parent_tool_use_id`) have conversations of their own: they are left out, unless the
  file is the log of a sub-agent;
- after `compact_boundary` the summary stands for everything before, but for messages that the record lists as
  preserved: these come again behind the summary.

Lines are taken in the order of the file. A session that was rewound is a tree, of which all branches are read. The log
has neither the system prompt nor the tools nor most reminders, and results that the client has cleared from its
requests without a compaction are still whole.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from ctxfast.logs.log import Log, LogError, Source, several, shape

__all__ = ["read", "recognises"]

Record = dict[str, Any]
Block = Any  # a content block: a dict, as the log has it


def recognises(source: Source) -> bool:
    """Whether it has a record that holds a message."""
    return any(is_message(record) for record in source.lines.records)


def read(source: Source, index: int | None) -> Log:
    """The session of the file."""
    records = source.lines.records
    several(source.name, 1, index, "in the file")
    if not recognises(source):
        got = shape(records[0]) if records else shape(source.value)
        raise LogError("a record with `type` user or assistant and a `message`", got, source.name)
    reader = Reader(sub_agent=all(is_side_chain(record) for record in records if is_message(record)))
    for record in records:
        reader.add(record)
    return reader.log(source)


def is_message(record: Record) -> bool:
    """Whether a record holds a message."""
    return record.get("type") in ("user", "assistant") and isinstance(record.get("message"), dict)


def is_side_chain(record: Record) -> bool:
    """Whether a record belongs to a sub-agent."""
    return bool(record.get("isSidechain") or record.get("parent_tool_use_id"))


@dataclass
class Step:
    """One response of the model, put together from its lines, with all results of its calls."""

    blocks: list[Block] = field(default_factory=list)
    results: list[Block] = field(default_factory=list)
    added: list[Block] = field(default_factory=list)
    """What the client has added behind the results."""
    injected: bool = False


@dataclass
class Said:
    """What the user or the client said."""

    content: Any
    injected: bool = False


@dataclass
class Reader:
    """Puts messages together, record by record."""

    sub_agent: bool
    skipped: Counter[str] = field(default_factory=Counter)
    items: list[Step | Said | None] = field(default_factory=list)
    """Steps and what was said in between; `None`: a compaction."""
    seen: dict[str, Record] = field(default_factory=dict)
    """Records of messages by their `uuid`, in the order of the file."""
    recent: list[str] = field(default_factory=list)
    """Those since the last compaction."""
    steps: dict[tuple[str | None, str | None], Step] = field(default_factory=dict)
    """Steps since somebody spoke or the conversation was compacted, by the ids of response and request."""
    open_calls: dict[str | None, list[Step]] = field(default_factory=dict)
    """By id, the steps whose call with that id has no result yet, the newest last."""
    preserved: list[Record] = field(default_factory=list)
    anchor: object = None
    """The `uuid` of the record behind which the preserved messages come."""

    def add(self, record: Record) -> None:
        """Take one record."""
        kind = kind_of(record)
        uuid = record.get("uuid")
        if isinstance(uuid, str) and uuid in self.seen:
            self.skipped["repeated line"] += 1
        elif is_side_chain(record) and not self.sub_agent:
            self.skipped["sub-agent"] += 1
        elif kind == "system/compact_boundary":
            self.compact(record)
        elif kind == "attachment/queued_command":
            self.add_queued(record)
        elif not is_message(record):
            self.skipped[kind] += 1
        elif not record["message"].get("content") or not isinstance(record["message"]["content"], (str, list)):
            self.skipped[f"{kind} without content"] += 1
        elif record.get("isApiErrorMessage"):
            self.skipped["API error"] += 1
        else:
            if isinstance(uuid, str):
                self.seen[uuid] = record
                self.recent.append(uuid)
            self.add_message(record)
        if self.anchor is not None and uuid == self.anchor:
            preserved, self.preserved, self.anchor = self.preserved, [], None
            for earlier in preserved:
                self.add_message(earlier)

    def add_message(self, record: Record) -> None:
        """Take a record that holds a message."""
        if record["type"] == "assistant":
            self.add_response(record)
        else:
            self.add_user(record)

    def add_response(self, record: Record) -> None:
        """A line of a response: the first, or one more of a response that has begun."""
        message = record["message"]
        key = (text_or_none(message.get("id")), text_or_none(record.get("requestId")))
        step = self.steps.get(key) if key[0] else None
        if step is None:
            step = self.steps[key] = Step(injected=message.get("model") == "<synthetic>")
            self.items.append(step)
        blocks = as_blocks(message["content"])
        step.blocks += blocks
        for call in blocks:
            if is_block(call, "tool_use"):
                self.open_calls.setdefault(text_or_none(call.get("id")), []).append(step)

    def add_user(self, record: Record) -> None:
        """A line of a user message: results, text, or both."""
        content = record["message"]["content"]
        results = [block for block in as_blocks(content) if is_block(block, "tool_result")]
        for result in results:
            self.add_result(result)
        if results:
            content = [block for block in content if not is_block(block, "tool_result")]
            if not content:
                return
        last = self.items[-1] if self.items else None
        injected = bool(record.get("isMeta"))
        if (injected or results) and isinstance(last, Step) and last.results:
            last.added += as_blocks(content)
        elif injected and isinstance(last, Said):
            last.content = as_blocks(last.content) + as_blocks(content)
        else:
            is_summary = bool(record.get("isCompactSummary"))
            if is_summary and not (self.items and last is None):
                self.begin_anew()  # older versions write no boundary
            self.say(Said(content, injected or is_summary))

    def add_result(self, result: Block) -> None:
        """A result goes to the nearest step with an open call of its id, whatever came since."""
        waiting = self.open_calls.get(text_or_none(result.get("tool_use_id")))
        last = self.items[-1] if self.items else None
        if waiting:
            waiting.pop().results.append(result)
        elif isinstance(last, Step):
            last.results.append(result)
        else:
            self.items.append(Step(results=[result]))  # its call is nowhere

    def add_queued(self, record: Record) -> None:
        """What the user typed while the model was working, and other commands from the queue."""
        attachment = record.get("attachment")
        prompt = attachment.get("prompt") if isinstance(attachment, dict) else None
        if isinstance(attachment, dict) and isinstance(prompt, (str, list)) and prompt:
            self.say(Said(prompt, injected=attachment.get("commandMode", "prompt") != "prompt"))
        else:
            self.skipped[kind_of(record)] += 1

    def say(self, said: Said) -> None:
        """Somebody speaks: no line that comes later belongs to an earlier response, even if their ids are the same."""
        self.items.append(said)
        self.steps.clear()

    def compact(self, record: Record) -> None:
        """A compaction: what follows stands for everything before."""
        recent = self.recent
        self.begin_anew()
        data = record.get("compactMetadata") or record.get("compact_metadata")
        data = data if isinstance(data, dict) else {}
        listed, segment = data.get("preservedMessages"), data.get("preservedSegment")
        if isinstance(listed, dict) and isinstance(listed.get("uuids"), list):
            uuids, self.anchor = listed["uuids"], listed.get("anchorUuid")
        elif isinstance(segment, dict):
            head, tail, self.anchor = (segment.get(key) for key in ("headUuid", "tailUuid", "anchorUuid"))
            uuids = recent[recent.index(head) : recent.index(tail) + 1] if head in recent and tail in recent else []
        else:
            uuids, self.anchor = [], None
        self.preserved = [self.seen[uuid] for uuid in uuids if isinstance(uuid, str) and uuid in self.seen]

    def begin_anew(self) -> None:
        """Forget everything that was open: nothing is added to messages before a compaction."""
        self.recent = []
        self.items.append(None)
        self.steps.clear()
        self.open_calls.clear()

    def log(self, source: Source) -> Log:
        """Everything as messages."""
        history: list[Record] = []
        compactions: list[int] = []
        injected: list[int] = []
        for item in self.items:
            if item is None:
                compactions.append(len(history))
                continue
            if item.injected:
                injected.append(len(history))
            if isinstance(item, Said):
                history.append({"role": "user", "content": item.content})
                continue
            if item.blocks:
                history.append({"role": "assistant", "content": item.blocks})
            if item.results or item.added:
                history.append({"role": "user", "content": item.results + item.added})
        sent_from = max((index for index in compactions if index < len(history)), default=0)
        return Log(
            form="claude-code",
            messages=history[sent_from:],
            history=history,
            compactions=tuple(dict.fromkeys(compactions)),
            injected=tuple(injected),
            damaged=tuple(source.lines.damaged),
            glued=tuple(source.lines.glued),
            skipped=dict(self.skipped.most_common()),
        )


def kind_of(record: Record) -> str:
    """What a record is: its type, and the subtype of those that have one."""
    kind = record.get("type")
    if not isinstance(kind, str):
        return "no type"
    attachment = record.get("attachment")
    subtype = attachment.get("type") if isinstance(attachment, dict) else record.get("subtype")
    return f"{kind}/{subtype}" if isinstance(subtype, str) else kind


def as_blocks(content: Any) -> list[Block]:
    """Content as a new list of blocks."""
    if isinstance(content, list):
        return list(content)
    return [{"type": "text", "text": content}] if content else []


def text_or_none(value: object) -> str | None:
    """An id, if it is one."""
    return value if isinstance(value, str) else None


def is_block(block: Block, block_type: str) -> bool:
    """Whether it is a block of a type."""
    return isinstance(block, dict) and block.get("type") == block_type
