"""Long made-up texts of the kinds that agents read; the strings of the transcripts are slices of them."""

from __future__ import annotations

import functools
import json
from random import Random

CORPUS_CHARS = 300_000  # per kind of text; the longest text of the profile has 89,293


def _words(text: str) -> list[str]:
    return text.split()


NOUNS = _words(
    """budget cache call chunk config counter cursor handler header index item job key ledger line
    message model node option parser path prefix queue record request result row schema session step
    store suffix table task token tool transcript turn user value window worker"""
)
VERBS = _words(
    """apply build check clear close collect compare count cut decode drop fetch fill find flush insert
    keep load merge move open parse pop prune push read remove render replace reset resolve save scan
    send sort split store trim update validate walk write"""
)
FILLERS = _words(
    """the a this that when because so then before after without only every again first last next which
    and but should must can would does not need to is are was with from into over until"""
)
FOLDERS = _words("src lib tests tools docs internal core server client scripts packages")
SUFFIXES = _words("py rs ts tsx go md toml json yaml sh")

# How ASCII text becomes the text with arrows, boxes and ticks that terminals and agents write.
ORNAMENTS = (
    ("\t", "→"),
    ("|-- ", "├── "),
    ("| ", "│ "),
    (" -> ", " → "),
    (" - ", " — "),
    ("---", "───"),
    ("[ok]", "✓"),
    ("[x]", "✗"),
    ("...", "…"),
    ("'", "’"),
)


def a_name(rng: Random) -> str:
    return f"{rng.choice(VERBS)}_{rng.choice(NOUNS)}"


def a_path(rng: Random) -> str:
    return f"{rng.choice(FOLDERS)}/{rng.choice(NOUNS)}/{a_name(rng)}.{rng.choice(SUFFIXES)}"


def _sentence(rng: Random) -> str:
    words = [rng.choice((FILLERS, NOUNS, FILLERS, VERBS)[i % 4]) for i in range(rng.randrange(6, 18))]
    words.insert(len(words) // 2, "-" if rng.random() < 0.5 else "->")
    if rng.random() < 0.3:
        words.insert(0, f"`{a_name(rng)}`")
    return " ".join(words).capitalize() + rng.choice(("...", ".", ".", ":"))


def _code_line(rng: Random, number: int) -> str:
    a, b, c = rng.choice(NOUNS), rng.choice(NOUNS), a_name(rng)
    statement = rng.choice(
        (
            f"def {c}({a}: str, {b}: int = {number % 97}) -> bool:",
            f"{a} = self.{c}({b}, limit={number % 1000})",
            f"if {a} is None or len({b}) > {number % 50}:",
            f"return {c}({a})",
            f"for {a} in {b}s:",
            f"# {rng.choice(VERBS)} the {a} before the {b}",
            f'raise ValueError(f"bad {a}: {{{b}}}")',
            f"assert {a}.{b} == {number}",
            "",
        )
    )
    return f"{number:6d}\t{'    ' * rng.randrange(4) if statement else ''}{statement}"


def _log_line(rng: Random, number: int) -> str:
    a, b, c, some = rng.choice(NOUNS), rng.choice(NOUNS), a_name(rng), rng.randrange(1_000_000)
    clock = f"{number // 3600 % 24:02d}:{number // 60 % 60:02d}:{number % 60:02d}.{some % 1000:03d}"
    return rng.choice(
        (
            f"{clock} INFO  {a}.{b} - {c} done in {some % 900} ms",
            f"{clock} DEBUG {c} {a}={some} -> {a_path(rng)}",
            f"{a_path(rng)}::test_{c} [ok] [{number % 100:3d}%]",
            f"| {a:12} | {some:>9} | {number:>9} | {c}",
            f"   Compiling {a}-{b} v0.{number % 40}.{some % 9} ({a_path(rng)}) [ok]",
            f"warning: unused {a}: '{c}' -> {a_path(rng)}:{number}:{some % 90}",
        )
    )


def _paths_line(rng: Random, number: int) -> str:
    path, a, b = a_path(rng), rng.choice(NOUNS), a_name(rng)
    return rng.choice(
        (
            f"|-- {path}",
            f"{path}:{number}:    {b}({a}, {rng.choice(NOUNS)}) -> {a_name(rng)}()",
            f"{path}-{number}-\t{a} = {b}()",
        )
    )


def _prose_line(rng: Random, number: int) -> str:
    del number
    return rng.choice(("", "", "- ", "## ")) + " ".join(_sentence(rng) for _ in range(rng.randrange(1, 4)))


def _json_line(rng: Random, number: int) -> str:
    record = {
        "id": number,
        rng.choice(NOUNS): a_name(rng),
        "path": a_path(rng),
        "note": f"'{_sentence(rng)}' -> {a_name(rng)}",
        rng.choice(NOUNS) + "s": [rng.randrange(1000), rng.random() < 0.5, None],
    }
    return json.dumps(record, indent=2 if number % 3 == 0 else None) + ","


def _short_line(rng: Random, number: int) -> str:
    if number % 4 == 0:
        return f"The file {a_path(rng)} was changed - the lines around the edit -> {a_name(rng)}"
    return _code_line(rng, number)


LINES = {
    "code": _code_line,
    "log": _log_line,
    "paths": _paths_line,
    "prose": _prose_line,
    "json": _json_line,
    "short": _short_line,
}


@functools.cache
def corpus(kind: str, *, ornate: bool) -> tuple[str, list[int]]:
    """A long text of one kind and the offsets at which its lines begin."""
    rng = Random(f"corpus/{kind}")
    lines: list[str] = []
    length = 0
    while length < CORPUS_CHARS:
        lines.append(LINES[kind](rng, len(lines) + 1))
        length += len(lines[-1]) + 1
    text = "\n".join(lines)
    if ornate:
        for plain, ornament in ORNAMENTS:
            text = text.replace(plain, ornament)
    starts = [0]
    while (end := text.find("\n", starts[-1])) >= 0:
        starts.append(end + 1)
    return text, starts
