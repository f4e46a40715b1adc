"""Failures from public reports: each case file names a call and the properties that must hold after it.

The adapter at the top says what a call of the case files means in terms of the package; a call that does not
exist yet is skipped as not covered. Each property is a small check that knows nothing of the package.
"""

from __future__ import annotations

import copy
import itertools
import json
import os
import stat
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from cases import calls_of, get, has_user_text, load_cases, pairing, results_of

from ctxfast import (
    BudgetError,
    CannotFitError,
    ContextBudget,
    ContextManager,
    ErrorInfo,
    Fitted,
    Level,
    OutputStore,
    Pruned,
    PrunePolicy,
    SummaryCheck,
    TokenCounter,
    TruncatedResult,
    Usage,
    UsageAnchor,
    check_summary,
    classify_error,
    count_tokens,
    find_safe_cut,
    fit_messages,
    fresh_tail_budget,
    insert_summary,
    prune_tool_outputs,
    repair,
    truncate_tool_output,
    turn_starts,
)
from ctxfast.logs.jsonl import read_jsonl

Case = dict[str, Any]

COUNTER = TokenCounter.default()
LENGTH = TokenCounter.from_callable(len, message_overhead=0)  # a token is a character


@dataclass
class Run:
    """What a case's call has given."""

    case: Case
    before: Any  # a deep copy of the input
    result: Any = None  # a number, or a list of messages
    error: Exception | None = None
    again: Callable[[Case], Any] = lambda case: None  # the same call


# ------------------------------------------------------------------------------------------------ the adapter


def estimate_tokens(case: Case) -> Any:
    return count_tokens(case["text"])


def estimate_messages(case: Case) -> Any:
    return count_tokens(case["messages"])


def context_used_from_usage(case: Case) -> Any:
    usage = Usage.from_provider(case["usage"])
    return usage and usage.total_tokens


def tail_budget(case: Case) -> Any:
    """Of the window itself, as if all of it were usable; without a window that of a budget that knows none."""
    window = case["args"]["context_window"]
    return ContextBudget(window).fresh_tail if window is None else fresh_tail_budget(window)


def fit(case: Case) -> Fitted[Any]:
    """`marker`: a note of what was left out, of which there is none."""
    form = case["args"].get("format", "auto")
    return fit_messages(case["messages"], case["args"]["max_tokens"], form=form, counter=COUNTER)


def fit_to_budget(case: Case) -> list[Any]:
    return fit(case).messages


def keep_last_turns(case: Case) -> list[Any]:
    start = turn_starts(case["messages"])[-case["args"]["turns"]]
    return list(case["messages"][start:])


def drop_oldest_half(case: Case) -> list[Any]:
    messages = case["messages"]
    return list(messages[find_safe_cut(messages, len(messages) // 2) :])


def prune(case: Case, messages: list[Any]) -> Pruned[Any]:
    """Everything that is not protected, at once; `minimum_free`: in batches."""
    arguments = case["args"]
    strategy, minimum = arguments.get("strategy"), arguments.get("minimum_free")
    return prune_tool_outputs(
        messages,
        arguments.get("protect_last_turns", 0),
        protected_tokens=1_000_000 if strategy == "superseded" else arguments["protect_tokens"],
        protected_steps=arguments.get("protect_steps", 1),
        prune_threshold="auto" if minimum is None else minimum,
        prices=None,
        policy=PrunePolicy(min_saved=0, superseded="start" if strategy else "join"),
        counter=COUNTER,
    )


def prune_tool_output(case: Case) -> list[Any]:
    return prune(case, case["messages"]).messages


def growing(case: Case) -> Iterator[list[Any]]:
    """A list that grows step by step, as it is before each request."""
    steps, tokens = case["args"]["steps"], case["args"]["step_tokens"]
    messages: list[Any] = [{"role": "user", "content": "go"}]
    for number in range(steps):
        function = {"name": "read", "arguments": json.dumps({"path": f"{number}.py"})}
        call = {"id": f"c{number}", "type": "function", "function": function}
        messages.append({"role": "assistant", "content": None, "tool_calls": [call]})
        messages.append({"role": "tool", "tool_call_id": f"c{number}", "content": "word " * (tokens // 2)})
        yield list(messages)


def prune_sequence(case: Case) -> list[Any]:
    return [prune(case, messages).messages for messages in growing(case)]


def should_compact(case: Case) -> bool:
    """Whether so many tokens are too many, or, of a series of records, whether the prompt ever passes the threshold."""
    arguments = case["args"]
    window = arguments["context_window"]
    if "used" in arguments:
        UsageAnchor(context_window=window)
        budget = ContextBudget(window, arguments.get("max_output"))
        return budget.is_over(arguments["used"]) or budget.level(arguments["used"]) > Level.NORMAL
    series = case["usage_series"]
    found = []
    for anchor in (UsageAnchor(LENGTH), UsageAnchor(LENGTH, context_window=window)):
        tokens = series[0]["total"] - series[0]["estimated_added"]
        for record in series:
            tokens += record["estimated_added"]
            messages = [{"role": "user", "content": "x" * tokens}]
            anchor.observe(Usage(record["total"]), messages)
            found.append(anchor.predict(messages) > arguments["threshold"] * window)
    return any(found)


def error_of(error: dict[str, Any]) -> ErrorInfo:
    """What a case's error is classified as: a message, a body, or exceptions of which each is caused by the next."""
    if "exception_chain" not in error:
        return classify_error(error.get("body", error.get("message")), error["status"])
    chain: list[Exception] = []
    for link in error["exception_chain"]:
        exception: Exception = type(link["type"], (Exception,), {})(link["message"])
        vars(exception).update({key: link[key] for key in link if key not in ("type", "message")})
        if chain:
            chain[-1].__cause__ = exception
        chain.append(exception)
    return classify_error(chain[0])


def classify(case: Case) -> ErrorInfo:
    return error_of(case["error"])


def text_of(case: Case) -> str:
    escaped = case.get("text_escaped")
    return str(case["text"] if escaped is None else json.loads(f'"{escaped}"'))


@dataclass
class Truncated:
    """What `truncate_output` has given, for each limit and each id of a call, and where it was saved."""

    store: OutputStore
    results: list[TruncatedResult[str]] = field(default_factory=list)
    limits: list[dict[str, int]] = field(default_factory=list)

    @property
    def files(self) -> list[Path]:
        return [Path(result.full_path) for result in self.results if result.full_path]


def truncate_output(case: Case) -> Truncated:
    """A limit in characters is one in tokens that are characters; an id of a call is the name of a tool."""
    arguments = case["args"]
    directory = Path(tempfile.mkdtemp()) / "outputs"
    if "dir" in arguments:
        directory.write_text("a file in the way")
        directory /= "sub"
    names = {"max_lines": "max_lines", "max_bytes": "max_bytes", "max_chars": "max_tokens"}
    given = {names[name]: value for name, value in arguments.items() if name in names}
    several = max((len(value) for value in given.values() if isinstance(value, list)), default=1)
    truncated = Truncated(OutputStore(directory))
    before = os.umask(arguments.get("umask", 0o022))
    try:
        for number in range(several):
            limits = {name: value[number] if isinstance(value, list) else value for name, value in given.items()}
            for name in arguments.get("call_ids", ["tool"]):
                options: dict[str, Any] = {"counter": LENGTH, **limits, "clean": arguments.get("clean", False)}
                result = truncate_tool_output(text_of(case), tool_name=name, store=truncated.store, **options)
                truncated.results.append(result)
                truncated.limits.append(limits)
    finally:
        os.umask(before)
    return truncated


@dataclass
class Swept:
    """A directory of saved outputs after a clean-up."""

    removed: list[str]
    before: dict[str, str]
    after: dict[str, str]


def clean_up(case: Case) -> Swept:
    """Own files, old, referred to and new, between what belongs to others."""
    directory = Path(tempfile.mkdtemp())
    store = OutputStore(directory, max_age_days=case["args"]["max_age_days"])
    old, referenced = (store.save(text, "bash") or "" for text in ("old", "referenced"))
    store.save("new", "bash")
    (directory / "foreign.txt").write_text("foreign")
    (directory / "bash-0123456789abcdef.txt").write_text("like one of ours")
    (directory / "folder").mkdir()
    foreign = [directory / "foreign.txt", directory / "bash-0123456789abcdef.txt"]
    for path in (store.path(old), store.path(referenced), *foreign):
        os.utime(path, (1, 1))
    if sys.platform != "win32":
        (directory / "ctxfast-0123456789abcdef.txt").symlink_to(directory / "foreign.txt")
    found = {path.name: "folder" if path.is_dir() else path.read_text() for path in directory.iterdir()}
    assert case["args"]["keep"] == ["<referenced>"]
    removed = store.sweep(keep=[referenced])
    return Swept(
        removed, found, {path.name: "folder" if path.is_dir() else path.read_text() for path in directory.iterdir()}
    )


def mend(case: Case) -> list[Any]:
    return repair(case["messages"]).messages


def checked(case: Case) -> SummaryCheck:
    """A plain summary against the messages whose place it would take."""
    start, stop = case["args"]["replace"]
    source = COUNTER.messages(case["messages"][start:stop])
    return check_summary(case["args"]["summary"], source, structured=False, counter=COUNTER)


def apply_summary(case: Case) -> list[Any]:
    """In the place of some messages, if it can stand there."""
    check, (start, stop) = checked(case), case["args"]["replace"]
    return insert_summary(case["messages"], stop, check.text, start=start) if check.ok else case["messages"]


def compaction_loop(case: Case) -> list[str]:
    """What a manager tells of in three requests; what the provider counts unseen is the floor."""
    arguments = case["args"]
    told: list[str] = []
    budget = ContextBudget(arguments["context_window"], arguments["max_output"])
    manager = ContextManager(budget, counter=COUNTER, on_event=lambda event: told.append(type(event).__name__))
    *_, messages = growing({"args": {"steps": 4, "step_tokens": 400}})
    manager.prepare(messages)
    manager.record_usage(Usage(arguments["floor_tokens"] + COUNTER.messages(messages)))
    for _ in range(3):
        try:
            manager.prepare(messages)
        except CannotFitError as error:
            told.append(f"floor {error.needed} usable {error.budget}")
    return told


def read_log(case: Case) -> Any:
    return read_jsonl(json.loads(f'"{case["text_escaped"]}"').encode())


CALLS: dict[str, Callable[[Case], Any]] = {
    "read_jsonl": read_log,
    "compaction_loop": compaction_loop,
    "repair": mend,
    "prune_tool_outputs": prune_tool_output,
    "prune_sequence": prune_sequence,
    "estimate_tokens": estimate_tokens,
    "estimate_messages": estimate_messages,
    "context_used_from_usage": context_used_from_usage,
    "fresh_tail_budget": tail_budget,
    "fit_to_budget": fit_to_budget,
    "keep_last_turns": keep_last_turns,
    "drop_oldest_half": drop_oldest_half,
    "should_compact": should_compact,
    "classify_error": classify,
    "truncate_output": truncate_output,
    "cleanup": clean_up,
    "apply_summary": apply_summary,
}

# --------------------------------------------------------------------------------------------- the properties


def no_orphan_results(run: Run, _: str) -> None:
    assert pairing(run.result).orphans == []


def no_unanswered_calls(run: Run, _: str) -> None:
    """Every call has a result before the next assistant message, except in the last assistant message."""
    paired = pairing(run.result)
    assistants = [index for index, message in enumerate(run.result) if get(message, "role") == "assistant"]
    for index in assistants[:-1]:
        following = next(later for later in assistants if later > index)
        answers = [result for call, result in paired.pairs if call == index]
        assert len(answers) == len(calls_of(run.result[index]))
        assert all(result < following for result in answers)


def system_kept(run: Run, _: str) -> None:
    system = [message for message in run.before["messages"] if message["role"] == "system"]
    assert [message for message in run.result if message["role"] == "system"] == system


def last_user_kept(run: Run, _: str) -> None:
    assert [message for message in run.before["messages"] if has_user_text(message)][-1] in run.result


def text_kept(run: Run, text: str) -> None:
    if isinstance(run.result, Truncated):
        assert all(text in result.preview for result in run.result.results)
        return
    assert any(text in str(message["content"]) for message in run.result)


def first_non_system_is_user(run: Run, _: str) -> None:
    first = next(message for message in run.result if message["role"] not in ("system", "developer"))
    assert has_user_text(first)


def within_budget(run: Run, _: str) -> None:
    assert COUNTER.messages(run.result) <= run.case["args"]["max_tokens"]


def records(run: Run, count: str) -> None:
    assert len(run.result[0]) == int(count)


def stops_within(run: Run, times: str) -> None:
    assert run.result.count("Summarised") <= int(times)


def error_has(run: Run, names: str) -> None:
    numbers = dict(zip(*[iter(run.result[-1].split())] * 2, strict=True))
    assert set(names.split(",")) <= set(numbers)
    assert int(numbers["floor"]) >= run.case["args"]["floor_tokens"]
    assert int(numbers["usable"]) < run.case["args"]["context_window"] - run.case["args"]["max_output"]


def no_consecutive_same_role_added(run: Run, _: str) -> None:
    def neighbours(messages: list[Any]) -> int:
        return sum(one["role"] == other["role"] for one, other in itertools.pairwise(messages))

    assert neighbours(run.result) <= neighbours(run.before["messages"])


def equal_to_input(run: Run, _: str) -> None:
    assert run.result == run.before["messages"]


def input_unchanged(run: Run, _: str) -> None:
    assert run.case == run.before


def estimate_between(run: Run, bounds: str) -> None:
    low, high = bounds.split(":")
    assert int(low) <= run.result <= int(high)


def at_least(run: Run, bound: str) -> None:
    assert run.result >= int(bound)


def at_most(run: Run, bound: str) -> None:
    assert run.result <= int(bound)


def positive(run: Run, _: str) -> None:
    assert run.result > 0


def independent_of_base64_length(run: Run, _: str) -> None:
    shorter = copy.deepcopy(run.case)
    for message in shorter["messages"]:
        for part in message["content"]:
            if part["type"] == "image_url":
                part["image_url"]["url"] = part["image_url"]["url"][:1_000]
    assert shorter != run.case
    assert run.again(shorter) == run.result


def outputs(messages: list[Any]) -> dict[str, Any]:
    """The contents of tool outputs by the ids of their calls."""
    blocks = [block for message in messages if isinstance(message["content"], list) for block in message["content"]]
    found = {message["tool_call_id"]: message["content"] for message in messages if message["role"] == "tool"}
    return {**found, **{block["tool_use_id"]: block["content"] for block in blocks if block["type"] == "tool_result"}}


def pruned(run: Run, listed: str) -> None:
    marks = ("[Tool output pruned", "[Old tool result content cleared]")
    assert all(outputs(run.result)[call].startswith(marks) for call in listed.split(","))


def kept(run: Run, listed: str) -> None:
    before, after = outputs(run.before["messages"]), outputs(run.result)
    assert all(after[call] == before[call] for call in listed.split(","))


def kept_in_current_turn_step(run: Run, count: str) -> None:
    start = [index for index, message in enumerate(run.result) if message["role"] == "assistant"][-int(count)]
    assert run.result[start:] == run.before["messages"][start:]


def idempotent(run: Run, _: str) -> None:
    assert run.again({**run.case, "messages": run.result}) == run.result


def message_count_unchanged(run: Run, _: str) -> None:
    assert len(run.result) == len(run.before["messages"])


def roles_unchanged(run: Run, _: str) -> None:
    assert [message["role"] for message in run.result] == [message["role"] for message in run.before["messages"]]


def messages_of(messages: list[Any], role: str) -> list[Any]:
    return [message for message in messages if message["role"] == role]


def assistant_messages_unchanged(run: Run, _: str) -> None:
    assert messages_of(run.result, "assistant") == messages_of(run.before["messages"], "assistant")


def user_messages_unchanged(run: Run, _: str) -> None:
    assert messages_of(run.result, "user") == messages_of(run.before["messages"], "user")


def unchanged_messages_same_object(run: Run, _: str) -> None:
    pairs = zip(run.result, run.case["messages"], strict=True)
    assert all(new is old for new, old in pairs if new == old)
    assert any(new is old for new, old in zip(run.result, run.case["messages"], strict=True))


def changed_prefix_at_most(run: Run, limit: str) -> None:
    changes = sum(later[: len(list_)] != list_ for list_, later in itertools.pairwise(run.result))
    assert 0 < changes <= int(limit)


def reports(run: Run, what: str) -> None:
    if what == "unknown_window":
        budget = ContextBudget(run.case["args"]["context_window"])
        assert not budget.known
        assert "context window  not known" in str(budget)
        return
    if run.case["call"] == "repair":  # a code, and how often
        code, _, count = what.partition(":")
        codes = [fix.code for fix in repair(run.case["messages"]).report.items]
        assert codes.count(code) == int(count) if count else code in codes
        return
    if run.case["call"] == "read_jsonl":
        assert what == f"damaged:{len(run.result[1])}"
        return
    if run.case["call"] == "compaction_loop":
        assert what == "no_progress"
        assert run.result.count("CannotFit") == 3  # each time at once, and with the numbers
        return
    if run.case["call"] == "fit_to_budget":
        assert what == "dropped"
        report = fit(run.case).report
        mended = repair(run.case["messages"], run.case["args"].get("format", "auto")).messages
        assert report.dropped
        assert len(mended) - sum(part.stop - part.start for part in report.dropped) == len(run.result)
        return
    if what == "save_error":
        assert all(result.save_error for result in run.result.results)
        assert all(result.save_error in result.hint for result in run.result.results)
        return
    if run.case["call"] == "apply_summary":
        assert what == "no_gain"
        assert [problem.code for problem in checked(run.case).problems] == ["not_smaller"]
        return
    assert what == "first_changed_index"
    found = [prune(run.case, messages).report for messages in growing(run.case)]
    assert all((report.earliest_changed_index is not None) == report.changed for report in found)
    assert found[-1].changed


def one_result_per_call(run: Run, _: str) -> None:
    paired = pairing(run.result)
    assert paired.orphans == paired.unanswered == []


def results_count(run: Run, count: str) -> None:
    assert sum(len(results_of(message)) for message in run.result) == int(count)


def results_in_call_order(run: Run, _: str) -> None:
    calls = [call for message in run.result for call in calls_of(message)]
    assert [call for message in run.result for call in results_of(message)] == calls
    contents = [message["content"] for message in run.before["messages"] if message["role"] == "tool"]
    assert [message["content"] for message in run.result if message["role"] == "tool"] == contents


def no_exception(run: Run, _: str) -> None:
    assert run.error is None


def returns(run: Run, value: str) -> None:
    assert run.result == (run.before["messages"] if value == "unchanged" else json.loads(value))


def raises(run: Run, name: str) -> None:
    assert {"BudgetError": BudgetError}[name] is type(run.error)


def class_(run: Run, name: str) -> None:
    """The cases know five classes. Theirs is an overflow wherever shrinking is what helps."""
    if name == "context_overflow":
        assert run.result.kind in ("context_overflow", "rate_limit")
        assert run.result.retry == "shrink"
    elif name == "other":
        assert run.result.kind in ("unknown", "output_cap")
        assert not run.result.shrink_helps
    else:
        assert run.result.kind == name


def requested(run: Run, tokens: str) -> None:
    assert run.result.requested_tokens == int(tokens)


def limit(run: Run, tokens: str) -> None:
    assert run.result.limit == int(tokens)


def time_le_ms(run: Run, limit: str) -> None:
    seconds = []
    for _ in range(3):
        start = time.perf_counter()
        run.again(run.case)
        seconds.append(time.perf_counter() - start)
    assert statistics.median(seconds) * 1_000 <= int(limit)


def valid_utf8(run: Run, _: str) -> None:
    for result in run.result.results:
        result.preview.encode()


def prefix_of_input(run: Run, _: str) -> None:
    assert all(text_of(run.case).startswith(result.preview) for result in run.result.results)


def preview_bytes_le(run: Run, _: str) -> None:
    results = zip(run.result.results, run.result.limits, strict=True)
    assert all(len(result.preview.encode()) <= limits["max_bytes"] for result, limits in results)


def preview_chars_le(run: Run, _: str) -> None:
    results = zip(run.result.results, run.result.limits, strict=True)
    assert all(len(result.preview) <= limits["max_tokens"] for result, limits in results)


def does_not_end_inside_cluster(run: Run, _: str) -> None:
    """Where the clusters of the one text end is written down here."""
    clusters = ["กี่", " ", "ที่", " ", "👨‍👩‍👧‍👦", "🇹🇭", "é"]
    assert "".join(clusters) == text_of(run.case)
    ends = set(itertools.accumulate(map(len, clusters))) | {0}
    assert {len(result.preview) for result in run.result.results} <= ends
    assert any(result.preview for result in run.result.results)


def keeps_head(run: Run, _: str) -> None:
    assert all(result.preview.startswith(text_of(run.case)[:100]) for result in run.result.results)


def keeps_tail(run: Run, _: str) -> None:
    assert all(result.preview.endswith(text_of(run.case)[-100:]) for result in run.result.results)


def no_char(run: Run, escaped: str) -> None:
    char = json.loads(f'"{escaped}"')
    assert char in text_of(run.case)
    assert all(char not in result.preview for result in run.result.results)


def saved_file_equals_input(run: Run, _: str) -> None:
    assert len(run.result.files) == len(run.result.results)
    assert all(file.read_bytes() == text_of(run.case).encode() for file in run.result.files)


def path_inside_dir(run: Run, _: str) -> None:
    directory = Path(run.result.store.directory).resolve()
    assert all(file.resolve().parent == directory for file in run.result.files)


def file_exists(run: Run, _: str) -> None:
    assert all(file.is_file() for file in run.result.files)


def distinct_files(run: Run, _: str) -> None:
    assert len(set(run.result.files)) == len(run.result.results) == len(run.case["args"]["call_ids"])


def mode_0600(run: Run, _: str) -> None:
    assert run.result.files
    assert all(stat.S_IMODE(file.stat().st_mode) == 0o600 for file in run.result.files)


def dir_mode_0700(run: Run, _: str) -> None:
    assert stat.S_IMODE(Path(run.result.store.directory).stat().st_mode) == 0o700


def path_is_none(run: Run, _: str) -> None:
    assert all(result.full_path is None for result in run.result.results)


def no_partial_file(run: Run, _: str) -> None:
    above = Path(run.result.store.directory).parent
    assert above.read_text() == "a file in the way"
    assert list(above.parent.iterdir()) == [above]


def foreign_files_kept(run: Run, _: str) -> None:
    names = {"foreign.txt", "bash-0123456789abcdef.txt", "folder"}
    assert names <= set(run.result.after)
    assert ("ctxfast-0123456789abcdef.txt" in run.result.after) is (sys.platform != "win32")


def referenced_kept(run: Run, _: str) -> None:
    assert "referenced" in run.result.after.values()
    assert "new" in run.result.after.values()


def returns_removed_list(run: Run, _: str) -> None:
    assert set(run.result.removed) == set(run.result.before) - set(run.result.after)
    assert [run.result.before[name] for name in run.result.removed] == ["old"]


PROPERTIES: dict[str, Callable[[Run, str], None]] = {
    check.__name__.rstrip("_"): check
    for check in (
        no_orphan_results,
        no_unanswered_calls,
        system_kept,
        last_user_kept,
        text_kept,
        first_non_system_is_user,
        within_budget,
        no_consecutive_same_role_added,
        records,
        stops_within,
        error_has,
        equal_to_input,
        input_unchanged,
        estimate_between,
        at_least,
        at_most,
        positive,
        independent_of_base64_length,
        pruned,
        kept,
        kept_in_current_turn_step,
        idempotent,
        message_count_unchanged,
        roles_unchanged,
        assistant_messages_unchanged,
        user_messages_unchanged,
        unchanged_messages_same_object,
        changed_prefix_at_most,
        reports,
        one_result_per_call,
        results_count,
        results_in_call_order,
        no_exception,
        returns,
        raises,
        class_,
        requested,
        limit,
        time_le_ms,
        valid_utf8,
        prefix_of_input,
        preview_bytes_le,
        preview_chars_le,
        does_not_end_inside_cluster,
        keeps_head,
        keeps_tail,
        no_char,
        saved_file_equals_input,
        path_inside_dir,
        file_exists,
        distinct_files,
        mode_0600,
        dir_mode_0700,
        path_is_none,
        no_partial_file,
        foreign_files_kept,
        referenced_kept,
        returns_removed_list,
    )
}

# --------------------------------------------------------------------------------------------------- the test

CASES = load_cases()


@pytest.fixture(autouse=True)
def temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where calls of cases make their directories."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@pytest.mark.parametrize(
    ("case", "expected"),
    [(case, expected) for case in CASES for expected in case["expected_property"]],
    ids=[f"{case['file']}-{expected}" for case in CASES for expected in case["expected_property"]],
)
def test_case(case: Case, expected: str) -> None:
    call = CALLS.get(case["call"])
    if call is None:
        pytest.skip(f"not covered yet: {case['call']}")

    run = Run(case, copy.deepcopy(case), again=call)
    try:
        run.result = call(case)
    except Exception as error:
        if not expected.startswith(("raises:", "no_exception")):
            raise
        run.error = error
    name, _, argument = expected.partition(":")
    PROPERTIES[name](run, argument)


@pytest.mark.skipif(not CASES, reason="no shared data")
def test_the_checks_see_what_is_wrong() -> None:
    """A check that never fails checks nothing: the naive last-n of case 1 breaks what it should."""
    case = next(case for case in CASES if case["file"].startswith("01-"))
    naive = Run(case, copy.deepcopy(case), result=case["messages"][3:-1])
    assert results_of(naive.result[0])
    for broken in (no_orphan_results, system_kept, last_user_kept, within_budget, first_non_system_is_user):
        with pytest.raises(AssertionError):
            broken(naive, "")
    cut_short = Run(case, copy.deepcopy(case), result=[case["messages"][index] for index in (1, 2, 4)])
    with pytest.raises(AssertionError):
        no_unanswered_calls(cut_short, "")
