"""The tokens of a conversation, message by message, and their total."""

from __future__ import annotations

from collections.abc import Sequence

from ctxfast.reference.counting import Counter, check_budget
from ctxfast.reference.estimating import default_counter
from ctxfast.reference.reading import expect_messages, read_message


class TokenLedger:
    """A list of counts. The total is added up whenever it is asked for; `resync` counts everything."""

    def __init__(self, counter: Counter | None = None, messages: Sequence[object] | None = None) -> None:
        """The first messages, if there are any."""
        self.counter = counter or default_counter()
        self._tokens: list[int] = [] if messages is None else self._count(messages)

    def _count(self, messages: Sequence[object]) -> list[int]:
        readings = [read_message(m, f"messages[{i}]") for i, m in enumerate(expect_messages(messages))]
        return [self.counter.pieces(reading) for reading in readings]

    def _place(self, index: int) -> int:
        """The index counted from the start."""
        length = len(self._tokens)
        if not -length <= expect_int(index, "index") < length:
            raise IndexError(f"index: expected one of {length} messages, got {index}")
        return index % length

    def append(self, message: object) -> None:
        """One more message."""
        self._tokens.append(self.counter.pieces(read_message(message, "message")))

    def extend(self, messages: Sequence[object]) -> None:
        """More messages, or none of them if one cannot be read."""
        self._tokens += self._count(messages)

    def replace(self, index: int, message: object) -> None:
        """Another message in place of one."""
        expect_int(index, "index")
        tokens = self.counter.pieces(read_message(message, "message"))
        self._tokens[self._place(index)] = tokens

    def truncate(self, length: int) -> None:
        """The first `length` messages stay."""
        if expect_int(length, "length") < 0:
            raise ValueError(f"length: expected 0 or more, got {length}")
        del self._tokens[length:]

    def total(self) -> int:
        """Tokens of all messages."""
        return self.counter.total(sum(self._tokens))

    def tokens(self, index: int) -> int:
        """Tokens of one message."""
        return self._tokens[self._place(index)]

    def tail_within(self, budget: float) -> int:
        """The least index from which on all messages together have at most `budget` tokens; at worst their number."""
        most = check_budget(budget, "budget", zero=True)
        return next(start for start in range(len(self) + 1) if self.counter.total(sum(self._tokens[start:])) <= most)

    def resync(self, messages: Sequence[object]) -> int:
        """The counts of these messages instead; returns how many were counted: all."""
        self._tokens = self._count(messages)
        return len(self._tokens)

    def copy(self) -> TokenLedger:
        """Another ledger with the same counts."""
        other = TokenLedger(self.counter)
        other._tokens = list(self._tokens)
        return other

    def __len__(self) -> int:
        """How many messages there are."""
        return len(self._tokens)


def expect_int(value: int, name: str) -> int:
    """The value, if it is a whole number."""
    if isinstance(value, bool) or not isinstance(value, int):
        raise TypeError(f"{name}: expected a whole number, got `{type(value).__name__}`")
    return value
