"""Counting tokens: the counter, its configuration, running totals and the one-call shortcut."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from ctxfast._core import TextLedger, TokenCounter, TokenLedger, count_tokens

__all__ = ["EstimatorConfig", "TextLedger", "TokenCounter", "TokenLedger", "count_tokens"]


@dataclass(frozen=True)
class EstimatorConfig:
    """Rates of a flat estimator: so many characters (or bytes) of text make one token.

    The defaults are those of the first design: 4.0 characters per token, rounded up for each message, 12
    characters for a message's frame, 256 tokens for a media part (source: PicoClaw's estimator, which
    `TokenCounter.picoclaw` reproduces bit by bit). 4.0 is *low* for code, JSON, everything that is not
    English, and all current Claude models; `TokenCounter.default` errs upwards instead.
    """

    chars_per_token: float = 4.0
    """Units of text per token. The unit is a character (code point) unless `unit` says otherwise."""
    rounding: Literal["up", "down"] = "up"
    """How the tokens of one message are rounded to a whole number."""
    message_overhead: int = 12
    """Units added to each message for its frame."""
    media_tokens: int = 256
    """Tokens of one image, audio, video or file part, whatever its size."""
    unit: Literal["chars", "bytes", "mixed"] = "chars"
    """What is measured: code points, UTF-8 bytes, or PicoClaw's mixture (code points of content and reasoning,
    bytes of ids, names, arguments and schemas)."""
    tool_overhead: int = 20
    """Units added to each tool definition."""
    code_per_token: float | None = None
    """Units per token of JSON and code: tool outputs, arguments, names, ids, schemas. `None`: as prose."""
    thai_per_token: float | None = None
    """Units per token of Thai characters (U+0E00 to U+0E7F), wherever they stand. `None`: as the text around."""

    def __post_init__(self) -> None:
        """Reject what is no rate: a clear error now instead of a wrong budget later."""
        for name in ("chars_per_token", "code_per_token", "thai_per_token"):
            value = getattr(self, name)
            if value is None and name != "chars_per_token":
                continue
            if isinstance(value, bool) or not isinstance(value, (int, float)):
                raise TypeError(f"{name}: expected a number, got {value!r}")
            if not 0.01 <= value <= 1e12:  # of NaN neither is true
                raise ValueError(f"{name}: expected 0.01 to 1e12 units per token, got {value!r}")
        for name in ("message_overhead", "media_tokens", "tool_overhead"):
            value = getattr(self, name)
            if isinstance(value, bool) or not isinstance(value, int):
                raise TypeError(f"{name}: expected a whole number, got {value!r}")
            if not 0 <= value <= 1_000_000:
                raise ValueError(f"{name}: expected 0 to 1,000,000, got {value!r}")
        if self.rounding not in ("up", "down"):
            raise ValueError(f"rounding: expected 'up' or 'down', got {self.rounding!r}")
        if self.unit not in ("chars", "bytes", "mixed"):
            raise ValueError(f"unit: expected 'chars', 'bytes' or 'mixed', got {self.unit!r}")

    @classmethod
    def seed_rules(cls) -> EstimatorConfig:
        """Bytes per token as the context-optimiser document gives them: English 4, JSON and code 2, Thai 2 to 3.

        Thai is taken at 2.5. JSON and code are recognised by where they stand (arguments, schemas, tool
        outputs), not by looking at the text.
        """
        return cls(chars_per_token=4.0, unit="bytes", code_per_token=2.0, thai_per_token=2.5)
