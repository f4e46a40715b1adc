"""Calling a model that may raise, hang, or have to be awaited: what comes back is an answer or why there is none."""

from __future__ import annotations

import asyncio
import contextvars
import inspect
import threading
import time
from collections.abc import Awaitable, Callable
from concurrent.futures import Future
from concurrent.futures import TimeoutError as FutureTimeoutError
from typing import Any

from ctxfast._core import classify_error
from ctxfast.summary.chain import Failed, Summarizer
from ctxfast.summary.checking import SummaryProblem

__all__ = ["awaited", "called"]


def left_of(deadline: float | None) -> float | None:
    """Seconds that are left."""
    return None if deadline is None else max(deadline - time.monotonic(), 0.0)


def in_thread(call: Callable[[], Any]) -> Future[Any]:
    """Runs something in a thread of its own that nobody has to wait for, not even at the end of the program."""
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # nobody can cancel it
    context = contextvars.copy_context()

    def work() -> None:
        try:
            future.set_result(context.run(call))
        except (Exception, asyncio.CancelledError) as error:
            # as a value: futures take no StopIteration, and a CancelledError would cancel whoever waits
            future.set_result(failed(error))
        except BaseException as error:
            future.set_exception(error)

    threading.Thread(target=work, name="ctxfast-summariser", daemon=True).start()
    return future


def called(summarize: Summarizer, prompt: str, deadline: float | None) -> object:
    """What a summariser gives; what is to be awaited is awaited in an event loop of its own."""

    def call() -> object:
        answer = summarize(prompt)
        if inspect.isawaitable(answer):
            return asyncio.run(within(answer, deadline))
        return answer

    try:
        return in_thread(call).result(left_of(deadline))
    except FutureTimeoutError:
        return timed_out()


async def within(answer: Awaitable[object], deadline: float | None) -> object:
    """What an awaitable gives in time."""

    async def waited() -> object:
        return await answer

    return await in_time(asyncio.ensure_future(waited()), deadline)


async def awaited(summarize: Summarizer, prompt: str, deadline: float | None) -> object:
    """What a summariser gives, without blocking the event loop."""
    try:
        # of an object with `async def __call__` it is the method of its class that says so
        if any(inspect.iscoroutinefunction(one) for one in (summarize, getattr(type(summarize), "__call__", None))):  # noqa: B004
            answer: object = summarize(prompt)
        else:
            answer = await in_time(asyncio.wrap_future(in_thread(lambda: summarize(prompt))), deadline)
        if inspect.isawaitable(answer):
            answer = await within(answer, deadline)
    except Exception as error:
        return failed(error)
    return answer


async def in_time(task: asyncio.Future[object], deadline: float | None) -> object:
    """What a task gives, or that it is too late. A task that hangs is cancelled and not waited for."""
    try:
        done, _ = await asyncio.wait({task}, timeout=left_of(deadline))
    except asyncio.CancelledError:
        task.cancel()
        raise
    if done:
        if task.cancelled():  # by itself, and not by whoever waits for the summary
            return failed(asyncio.CancelledError())
        return task.result()
    task.cancel()
    task.add_done_callback(lambda task: task.cancelled() or task.exception())
    return timed_out()


def timed_out() -> Failed:
    """The summariser took too long."""
    return Failed(SummaryProblem("timed_out", "the summariser has not answered in time"))


def failed(error: BaseException) -> Failed:
    """The summariser raised an exception."""
    try:
        text = f"{type(error).__name__}: {error}"[:300].removesuffix(": ")
        overflow = classify_error(error).shrink_helps
    except Exception:
        text, overflow = type(error).__name__, False
    return Failed(SummaryProblem("raised", f"the summariser raised {text}"), overflow)
