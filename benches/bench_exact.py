"""Exact counts beside tiktoken's, after a check that both say the same; and limits.

The texts are made of few words, which the counter soon remembers; `docs/exact.md` has figures for real text.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable

import pytest
import vocabularies
from pytest_benchmark.fixture import BenchmarkFixture
from tiktoken import Encoding
from tiktoken_ext import openai_public

from benches.texts import LINES, corpus
from ctxfast import TokenCounter

ENCODINGS = ("o200k_base", "cl100k_base")
CHARS = 20_000  # of a round; the text of a kind has 300,000
LONG = 4_000_000
LIMIT = 8_192  # tokens


@pytest.fixture(scope="module", params=ENCODINGS)
def counts(request: pytest.FixtureRequest) -> tuple[TokenCounter, Callable[[str], int]]:
    """The counter and tiktoken's count; tiktoken with the vocabulary of this repository instead of a download."""
    name: str = request.param
    ranks = {token: rank for rank, token in enumerate(vocabularies.packaged(name))}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks)
        encoding = Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())
    return TokenCounter.exact(name), lambda text: len(encoding.encode_ordinary(text))  # type: ignore[arg-type]


@pytest.mark.parametrize("who", ["ctxfast", "tiktoken"])
@pytest.mark.parametrize("kind", LINES)
def test_text(
    benchmark: BenchmarkFixture, counts: tuple[TokenCounter, Callable[[str], int]], kind: str, who: str
) -> None:
    text, _ = corpus(kind, ornate=True)
    slices = [text[start : start + CHARS] for start in range(0, len(text) - CHARS, CHARS)]
    ours, theirs = counts[0].text, counts[1]
    assert [ours(part) for part in slices[:3]] == [theirs(part) for part in slices[:3]]
    parts = itertools.cycle(slices)
    benchmark.group = f"exact count of {CHARS:,} characters, {kind}, {counts[0]!r}"
    count = ours if who == "ctxfast" else theirs
    benchmark.pedantic(count, setup=lambda: ((next(parts),), {}), rounds=len(slices))  # type: ignore[no-untyped-call]


@pytest.mark.parametrize("question", ["fits", "head", "tail"])
@pytest.mark.parametrize("length", [LONG // 4, LONG])
def test_limit(
    benchmark: BenchmarkFixture,
    counts: tuple[TokenCounter, Callable[[str], int]],
    question: str,
    length: int,
) -> None:
    text, _ = corpus("code", ornate=False)
    text = (text * (length // len(text) + 1))[:length]
    counter, theirs = counts
    assert not counter.fits(text, LIMIT)
    assert theirs(counter.head(text, LIMIT)) <= LIMIT < theirs(text[: 10 * LIMIT])
    assert theirs(counter.tail(text, LIMIT)) <= LIMIT < theirs(text[-10 * LIMIT :])
    benchmark.group = f"exact, {question}, {LIMIT:,} tokens, {counter!r}"
    benchmark(getattr(counter, question), text, LIMIT)
