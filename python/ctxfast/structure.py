"""What belongs together in a list of messages, where it can be cut, what a provider would refuse, and mending it."""

from __future__ import annotations

from ctxfast import _core
from ctxfast._core import (
    Fix,
    Problem,
    RepairReport,
    atoms,
    find_safe_cut,
    safe_cuts,
    step_starts,
    turn_starts,
    validate,
)

__all__ = [
    "Fix",
    "Problem",
    "RepairReport",
    "Repaired",
    "atoms",
    "find_safe_cut",
    "remove",
    "repair",
    "safe_cuts",
    "step_starts",
    "turn_starts",
    "validate",
]

TYPE_CHECKING = False  # as in `typing`, which takes longer to import than all of ctxfast
if TYPE_CHECKING:
    # The generated stub cannot say that the messages have the type of the messages that came in.
    from collections.abc import Iterable, Sequence
    from typing import ClassVar, Generic, Literal, TypeVar, final

    M = TypeVar("M")

    @final
    class Repaired(Generic[M]):
        """What `repair` gives. Its fields cannot be set."""

        __hash__: ClassVar[None]  # type: ignore[assignment]

        def __eq__(self, other: object, /) -> bool:
            """Whether the same was done, with equal messages."""
            raise NotImplementedError

        @property
        def messages(self) -> list[M]:
            """A new list that a provider accepts. Untouched messages are the same objects."""
            raise NotImplementedError

        @property
        def report(self) -> RepairReport:
            """What was done."""
            raise NotImplementedError

    def repair(
        messages: Sequence[M],
        form: Literal["auto", "openai", "anthropic"] = "auto",
        *,
        provider: Literal["openai", "anthropic"] | None = None,
        strict_predecessor: bool = False,
    ) -> Repaired[M]:
        """The list as a provider accepts it, and a report of all that was done for that.

        Results are moved to their calls, made up where a call was interrupted, dropped where there is no call or
        another result; blank ids are filled in, calls without a name dropped; messages of another form are converted.
        What a user says stays, and so do complete rounds and running calls. `form` and `provider` are those of
        `validate`; `strict_predecessor=True` drops what PicoClaw drops instead. The whole text:
        `help(ctxfast.repair)`.
        """
        raise NotImplementedError

    def remove(
        messages: Sequence[M],
        ids: Iterable[str],
        form: Literal["auto", "openai", "anthropic"] = "auto",
        *,
        provider: Literal["openai", "anthropic"] | None = None,
    ) -> Repaired[M]:
        """The list without some tool calls, by their ids: they go with their results, in a list that is repaired.

        A message that says nothing else goes, too; in the report all that is `removed`. The whole text:
        `help(ctxfast.remove)`.
        """
        raise NotImplementedError

else:
    Repaired = _core.Repaired
    remove = _core.remove
    repair = _core.repair
