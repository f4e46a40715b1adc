"""What type checkers say of calls that users write. Checked by mypy and pyright, not run."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypedDict

import ctxfast

if TYPE_CHECKING:
    from typing_extensions import assert_type


class Message(TypedDict):
    role: str
    content: str


def counting(messages: list[Message], tools: list[dict[str, object]]) -> None:
    """Anything goes in, a number comes out."""
    counter = ctxfast.TokenCounter.default()
    assert_type(counter(messages), int)
    assert_type(counter.text("hello"), int)
    assert_type(counter.messages(messages, tools), int)
    assert_type(counter.fits(messages, 8_000), bool)
    assert_type(counter.head("hello", 2), str)
    assert_type(ctxfast.count_tokens(messages, tools=tools, counter=counter), int)
    assert_type(ctxfast.TokenCounter.flat(ctxfast.EstimatorConfig(unit="bytes")), ctxfast.TokenCounter)
    assert_type(ctxfast.TokenCounter.from_callable(len), ctxfast.TokenCounter)
    ctxfast.TokenCounter.picoclaw("3.0")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def adding_up(messages: list[Message]) -> None:
    """A ledger takes any messages and gives numbers."""
    ledger = ctxfast.TokenLedger(ctxfast.TokenCounter.estimator("o200k"), messages)
    ledger.append({"role": "user", "content": "hello"})
    ledger.extend(tuple(messages))
    ledger.replace(-1, messages[0])
    assert_type(ledger.total(), int)
    assert_type(ledger.tokens(0), int)
    assert_type(ledger.tail_within(8_000.0), int)
    assert_type(ledger.resync(messages), int)
    assert_type(ledger.copy(), ctxfast.TokenLedger)
    ledger.extend({1, 2})  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def cutting(messages: tuple[Message, ...]) -> None:
    """Sequences of any messages; indices come out."""
    assert_type(ctxfast.safe_cuts(messages), list[int])
    assert_type(ctxfast.atoms(messages), list[tuple[int, int]])
    assert_type(ctxfast.find_safe_cut(messages, 10, mode="role"), int)
    ctxfast.find_safe_cut(messages, 10, mode="turns")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


def mending(messages: list[Message]) -> list[Message]:
    """The messages keep their type, what was done is listed."""
    repaired = ctxfast.repair(messages, "anthropic", provider="anthropic")
    assert_type(repaired, ctxfast.Repaired[Message])
    assert_type(repaired.report, ctxfast.RepairReport)
    assert_type(repaired.report.items, tuple[ctxfast.Fix, ...])
    assert_type(repaired.report.items[0].new_id, str | None)
    ctxfast.repair(messages, "gemini")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    return repaired.messages


def tail(messages: list[Message]) -> list[Message]:
    """What comes out has the type of what went in."""
    fresh = ctxfast.select_fresh_tail(messages, ctxfast.fresh_tail_budget(100_000), min_turns=1)
    assert_type(fresh, ctxfast.FreshTail[Message])
    assert_type(fresh.messages, list[Message])
    assert_type(fresh.pinned, tuple[int, ...])
    return fresh.messages


def pruning(messages: list[Message]) -> list[Message]:
    """The messages keep their type, a report goes on from call to call."""
    pruned = ctxfast.prune_tool_outputs(messages, 1, "auto", policy=ctxfast.PrunePolicy.careful())
    assert_type(pruned, ctxfast.Pruned[Message])
    assert_type(pruned.report, ctxfast.Report)
    assert_type(pruned.report.items, tuple[ctxfast.Edit, ...])
    report = ctxfast.Report.from_dict(pruned.report.as_dict())
    again = ctxfast.prune_tool_outputs(messages, prices=None, previous=report, store=Shelf())
    if again.report.blocked_by == "prune_threshold":
        ctxfast.prune_tool_outputs(messages, prune_threshold="soon")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    ctxfast.prune_tool_outputs(messages, store="shelf")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    return again.messages


def truncating(output: str, blocks: list[dict[str, str]], messages: list[Message]) -> list[Message]:
    """A preview is a text of a text and blocks of blocks; what is restored has the type of what went in."""
    store = ctxfast.OutputStore("outputs", max_age_days=None)
    result = ctxfast.truncate_tool_output(output, 100, tool_name="bash", keep="tail", store=store)
    assert_type(result, ctxfast.TruncatedResult[str])
    assert_type(result.preview, str)
    assert_type(result.full_path, str | None)
    assert_type(ctxfast.truncate_tool_output(blocks, store=None).preview, list[Any])
    ctxfast.truncate_tool_output(output, keep="middle")  # type: ignore[call-overload] # pyright: ignore[reportArgumentType, reportCallIssue]
    fitted = ctxfast.fit_tool_results([output, output], 1_000, tool_names="bash", store=Shelf())
    assert_type(fitted[0].was_truncated, bool)
    assert_type(store.save(output), str | None)
    assert_type(store.sweep(keep=ctxfast.saved_ids(messages)), list[str])
    schema, handler = ctxfast.recall_tool(store, form="anthropic")
    assert_type(schema, dict[str, Any])
    assert_type(handler({"id": "0123456789abcdef"}), str)
    return ctxfast.restore(ctxfast.prune_tool_outputs(messages, store=store).messages, store)


def usage(response: object, messages: list[Message]) -> int:
    """Families of tokenizers are checked, usage records are whatever came."""
    counter = ctxfast.TokenCounter.estimator("claude_v47", media_tokens=1_600)
    ctxfast.TokenCounter.estimator("claude")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    record = ctxfast.Usage.from_provider(response)
    assert_type(record, ctxfast.Usage | None)
    if record is not None:
        assert_type(record.prompt_tokens, int | None)
    anchor = ctxfast.UsageAnchor(counter, context_window=200_000, spread=0.06)
    anchor.observe(record, messages)
    assert_type(anchor.predict(messages), int)
    return anchor.predict(messages)


class Shelf:
    """A store."""

    def save(self, text: str, /) -> str:
        """Keeps it nowhere."""
        return text[:8]


def models(name: str) -> int:
    """What a model has is known by its name; what is not known is `None`."""
    info = ctxfast.model_info(name)
    assert_type(info, ctxfast.ModelInfo)
    assert_type(info.nearest, tuple[str, ...])
    assert_type(info.image_tokens(1024, 768, "low"), int)
    assert_type(ctxfast.TokenCounter.estimator(info.family, safety=0.95), ctxfast.TokenCounter)
    ctxfast.model_info(5)  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    return info.context_window or 0


def budget(name: str, used: int) -> ctxfast.Level:
    """What is not known is `None`; the rest are numbers."""
    budget = ctxfast.ContextBudget.for_model(name, max_output_tokens=32_000)
    assert_type(budget, ctxfast.ContextBudget)
    assert_type(budget.learned(128_000), ctxfast.ContextBudget)
    assert_type(budget.hard, int | None)
    assert_type(budget.usable, int | None)
    assert_type(budget.fresh_tail, int)
    assert_type(budget.is_over(used), bool)
    assert_type(ctxfast.ContextBudget(None, soft_limit=1_000).room(used), int | None)
    assert_type(ctxfast.ContextBudget.from_dict(budget.to_dict()), ctxfast.ContextBudget)
    assert_type(ctxfast.CompactReason("retry"), ctxfast.CompactReason)
    ctxfast.ContextBudget()  # type: ignore[call-arg] # pyright: ignore[reportCallIssue]
    ctxfast.ContextBudget(1_000, source="me")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    if budget.level(used) >= ctxfast.Level.URGENT:
        return ctxfast.Level.URGENT
    return budget.level(used)


def errors(error: Exception) -> int | None:
    """Any object goes in; kinds and advice are known words."""
    info = ctxfast.classify_error(error, 400, context_window=200_000)
    assert_type(info, ctxfast.ErrorInfo)
    assert_type(info.context_window, int | None)
    assert_type(info.retry_after, float | None)
    if info.kind == "rate_limit" and info.retry == "wait":
        return None
    ctxfast.classify_error(error, status="400")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    overflow = ctxfast.ContextOverflowError.from_exception(error, model="gpt-5")
    assert_type(overflow, ctxfast.ContextOverflowError | None)
    return None if overflow is None else overflow.context_window


def summarising(messages: list[Message]) -> None:
    """Summaries are texts; a summariser is any function of a prompt, or a coroutine function."""
    summary = ctxfast.summarise(messages, "before", summarize=str.upper, timeout=5)
    assert_type(summary, ctxfast.Summary)
    assert_type(summary.problems, tuple[ctxfast.SummaryProblem, ...])
    assert_type(ctxfast.build_summary_prompt(messages, max_tokens=4_000), str)
    assert_type(ctxfast.check_summary(summary.text).ok, bool)
    assert_type(ctxfast.condense([summary.text], summarize=str.upper), ctxfast.Summary)
    assert_type(ctxfast.fallback_summary(messages), str)
    assert_type(ctxfast.find_summary(messages), ctxfast.FoundSummary | None)
    assert_type(ctxfast.finished_segments(messages), list[tuple[int, int]])
    ctxfast.summarise(messages, summarize="gpt-5")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]


async def summarising_later(messages: list[Message]) -> None:
    """The same, awaited."""

    async def model(prompt: str) -> str:
        return prompt

    assert_type(await ctxfast.asummarise(messages, summarize=model), ctxfast.Summary)


def reading_files(budget: ctxfast.ContextBudget) -> None:
    """Plans of files and sessions."""
    plan = ctxfast.plan_read("a.md", section="Costs", room=budget, used=1_000.5, log=ctxfast.ReadLog())
    assert_type(plan, ctxfast.ReadPlan)
    assert_type(list(plan.read()), list[str])
    assert_type(plan.steps[0].limit, "int | None")
    ctxfast.plan_read("a.md", "everything")  # type: ignore[arg-type] # pyright: ignore[reportArgumentType]
    task = ctxfast.Task("two", reads=("a.md", {"path": "b.md"}), calls={"Bash": 2})
    session = ctxfast.plan_session(budget, 1_000, ["one", task, {"name": "three"}], messages=[], costs="log.jsonl")
    assert_type(session, ctxfast.SessionPlan)
    assert_type(session.available, "int | None")
