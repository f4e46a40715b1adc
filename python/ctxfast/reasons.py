"""Why a conversation is compacted: `CompactReason`."""

from __future__ import annotations

from enum import Enum

__all__ = ["CompactReason"]


class CompactReason(str, Enum):
    """Why a conversation is compacted. A member is a `str` with its value, so it can go into logs and JSON as it is.

    The values of the first design's older constants are accepted:

    >>> CompactReason("overflow"), CompactReason("llm_retry") is CompactReason.RETRY
    (<CompactReason.OVERFLOW: 'overflow'>, True)
    """

    PROACTIVE = "proactive"
    """The prompt has come near the limit; no request has failed."""
    RETRY = "retry"
    """A request has failed because of its size and is made again."""
    OVERFLOW = "overflow"
    """The provider has refused the prompt, or cut it in silence."""

    @classmethod
    def _missing_(cls, value: object) -> CompactReason | None:
        """A member by its older value."""
        legacy = {"proactive_budget": cls.PROACTIVE, "llm_retry": cls.RETRY}
        return legacy.get(value) if isinstance(value, str) else None

    def __str__(self) -> str:
        """The value: `overflow`."""
        return str(self.value)

    def __format__(self, form: str) -> str:
        """The value in text; Python versions differ in what they would do."""
        return format(self.value, form)
