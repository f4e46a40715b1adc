"""The fit of tables: a toy tokenizer is learnt from a small corpus, the same way each time."""

from __future__ import annotations

import json
import re
import statistics
import zlib
from pathlib import Path

import fit
import pack
import pytest
import revise
import truth
from accuracy_set import MAKERS, Writer

from ctxfast.reference.estimating import ALPHABETS, ASCII, COSTS, HAN, estimated, slots, table

TOY = re.compile(r" ?[A-Z]?[a-z]{1,6}| ?[A-Z]+|\d+| ?[^\w\s]+|\n+| +|.", re.DOTALL)


def starts(text: str) -> list[int]:
    return [token.start() for token in TOY.finditer(text)]


def corpus(seed: int) -> list[str]:
    """One text of each kind that the accuracy set has."""
    writer = Writer(seed)
    return [make(writer) for _, make in MAKERS]


def documents() -> list[fit.Document]:
    return [fit.Document(text, starts(text)) for seed in (1, 2, 4) for text in corpus(seed)]


@pytest.fixture(scope="module")
def fitted() -> bytes:
    return fit.fit(documents())


def test_a_toy_tokenizer_is_learnt(fitted: bytes) -> None:
    """On texts that the fit has not seen: far nearer than any number of characters a token."""
    pairs = [(estimated(fitted, text) / 64, len(starts(text)), len(text)) for text in corpus(3)]
    rate = statistics.median(chars / tokens for _, tokens, chars in pairs)
    assert statistics.mean(abs(estimate / tokens - 1) for estimate, tokens, _ in pairs) < 0.03
    assert statistics.mean(abs(chars / rate / tokens - 1) for _, tokens, chars in pairs) > 0.12


def test_the_same_documents_give_the_same_table(fitted: bytes) -> None:
    """In any order."""
    assert fit.fit(documents()[::-1]) == fitted


def test_other_starts_give_another_table(fitted: bytes) -> None:
    """Twice the tokens: twice the estimate."""
    twice = fit.fit([fit.Document(text, starts(text) * 2) for seed in (1, 2, 4) for text in corpus(seed)])
    text = corpus(3)[0]
    assert estimated(twice, text) == pytest.approx(2 * estimated(fitted, text), rel=0.05)


def test_costs_are_means() -> None:
    """Where a slot was seen often, its cost is its mean; where never, that of its pair."""
    text = "ab" * 2_000
    costs = fit.costs_of([fit.Document(text, range(0, len(text), 2))] * 4)
    inner = list(slots(text))[100:102]
    assert [costs[place] for place in inner] == pytest.approx([1.0, 0.0], abs=0.001)
    unseen = (inner[0] & ~15) | 3  # a sign after it
    assert costs[unseen] == pytest.approx(1.0, abs=0.001)
    assert len(costs) == COSTS


def test_a_long_document_weighs_less_than_its_length() -> None:
    """A document of 40,000 characters against nine of 400 that say something else."""
    long = fit.Document("x" * 40_000, range(0, 40_000, 2))
    short = [fit.Document("x" * 400, range(400))] * 9
    cost = fit.costs_of([long, *short])[next(iter(list(slots("x" * 20))[12:]))]
    assert 0.5 < cost < 0.75
    assert cost > (20_000 + 3_600) / 43_600 + 0.02


def test_too_few_documents() -> None:
    with pytest.raises(ValueError, match=r"^expected four documents or more, got 3$"):
        fit.fit(documents()[:3])


def test_a_line_through_points() -> None:
    offset, slope = fit.line([(0.0, 1.0, 1.0), (1.0, 3.0, 5.0), (2.0, 5.0, 0.1)])
    assert (offset, slope) == pytest.approx((1.0, 2.0))
    assert fit.line([(1.0, 2.0, 1.0), (1.0, 4.0, 1.0)]) == (3.0, 0.0)


def test_sources(tmp_path: Path) -> None:
    lines = tmp_path / "documents.jsonl"
    lines.write_text('{"text": "a"}\n{"text": "b", "weight": 0.3}\n', encoding="utf-8")
    assert list(fit.sources(lines)) == [("a", 1.0), ("b", 0.3)]
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "text").write_text("é", encoding="utf-8")
    (folder / "picture").write_bytes(b"\x89PNG\xff")
    assert list(fit.sources(folder)) == [("é", 1.0)]


def test_only_drawings_are_revised() -> None:
    """Slots of box drawing, blocks and shapes, to what the drawings say; no register."""
    texts = revise.drawings()[:80]
    before = table("o200k")
    after = revise.revised(before, [fit.Document(text, starts(text)) for text in texts], texts)
    assert texts == revise.drawings()[:80]
    changed = [place for place in range(len(before)) if before[place] != after[place]]
    assert 3 < len(changed) < 20
    assert {(place - ASCII - ALPHABETS - HAN) // 40 % 32 for place in changed} == {revise.DRAWN_SCRIPT}
    line = "Done.\n" + "─" * 80
    assert estimated(after, line) < estimated(before, line) / 2


@pytest.mark.parametrize("family", list(truth.SOURCES))
def test_tables_are_named_by_version(family: str) -> None:
    """The package has one version of each, and it is that of the file with this name."""
    files = sorted(pack.TABLES.glob(f"{family}-*.z"))
    assert [file.name for file in files] == [f"{family}-2.z"]
    assert zlib.decompress(files[0].read_bytes()) == table(family)


def test_coefficients_of_another_format(tmp_path: Path) -> None:
    file = tmp_path / "o200k.json"
    file.write_text(json.dumps(pack.FORMAT | {"unit": 32}))
    with pytest.raises(ValueError, match=r"o200k\.json: expected"):
        pack.study(file)
    with pytest.raises(ValueError, match=f"^expected {COSTS} and {ASCII} slots, got 1 and 2$"):
        pack.pack(b"a", b"bc", 0.0, 0.0)


def test_a_tokenizer_that_is_not_there() -> None:
    with pytest.raises(ModuleNotFoundError, match="no_such_package is not installed"):
        truth.package("no_such_package")
