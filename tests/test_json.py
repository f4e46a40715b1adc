"""What is sent as JSON is counted as the text that Python's `json` writes: compact, with its characters as they are."""

from __future__ import annotations

import enum
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from ctxfast import TokenCounter


class Number(enum.IntEnum):
    ONE = 1


class Name(str, enum.Enum):
    LONG = "long"


class Rounded(float):
    """Says something else of itself than `json` does."""

    def __repr__(self) -> str:
        return "about"


characters = st.characters(exclude_categories=())  # lone surrogates, too
leaves = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(),
    st.integers(-(10**60), 10**60),
    st.floats(),
    st.text(characters),
    st.text(st.characters(max_codepoint=0x2100)),
    st.sampled_from([Number.ONE, Name.LONG, Rounded(1.5), 1e16, -0.0, 5e-324]),
)
keys = st.text(characters, max_size=5)
values = st.recursive(
    leaves,
    lambda inner: st.one_of(st.lists(inner), st.tuples(inner, inner), st.dictionaries(keys, inner)),
    max_leaves=20,
)


@given(st.dictionaries(keys, values, max_size=4))
def test_arguments_are_the_text_that_json_writes(arguments: dict[str, Any]) -> None:
    texts: list[str] = []

    def count(text: str) -> int:
        texts.append(text)
        return 1

    call = {"type": "tool_use", "id": "t", "name": "f", "input": arguments}
    TokenCounter.from_callable(count).message({"role": "assistant", "content": [call]})
    assert json.dumps(arguments, ensure_ascii=False, separators=(",", ":")) in texts
