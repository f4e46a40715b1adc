"""Texts at which tokenizers have been seen to count wrong, made at random: for the tests and for `fuzz.py`.

for kind, text in texts(Random(1), 30_000): ...
"""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from random import Random

SURROGATES = range(0xD800, 0xE000)
POINTS = 0x110000

WHITE_SPACE = [
    chr(point) for point in (9, 10, 11, 12, 13, 28, 29, 30, 31, 32, 0x85, 0xA0, 0x1680, *range(0x2000, 0x200C))
]
WHITE_SPACE += [*"\u2028\u2029\u202f\u205f\u3000\ufeff\u180e\0", "\r\n", "  ", "   ", "\n\n"]
CONTRACTIONS = [
    "'" + cased
    for word in ("s", "t", "re", "ve", "m", "ll", "d")
    for cased in sorted({word, word.upper(), word.capitalize(), word[0] + word[1:].upper()})
]
CONTRACTIONS += ["’s", "'ſ", "'\u212a", "''", "'", "'l", "'r", "'v", "'x", "'lls", "'sd", "'S'T"]
WORDS = ["don", "I", "you", "HELLO", "Hello", "iPhone", "é", "中", "ส", "1", "_", " ", "\n", ".", "X", "ſ", "K", "!"]
WORDS += ["DON", "//", "a b"]
SPECIAL = ["<|endoftext|>", "<|endofprompt|>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|im_start|>"]
SPECIAL += ["<|im_end|>", "<|start|>", "<|end|>", "<|message|>", "<|channel|>", "<|return|>", "<|call|>", "<s>", "</s>"]
SPECIAL += ["[INST]", "<|begin_of_text|>"]
EMOJI = ["👩‍👩‍👧‍👦", "🏳️‍🌈", "👨🏽‍🚀", "🇹🇭", "🇺🇸", "❤️", "1️⃣", "\u200d", "\ufe0f", "😀", "👍🏿", "🫠", "\U000e0067", "©"]
EMOJI += ["™", "→", "█", "┌", "─", "│"]
SIGNS = "abcXYZ019 \t\n\r'\"._-/\\!?(){}[]<>,;:=+*&^%$#@~`|sStTrReEvVmMlLdD"
LONG = ["a", "A", " ", "\n", "\t", "\r\n", "!", "-", "=", "é", "中", "ก", "ับ", "1", "ab", "aA", "\u0301", "👍", "\0"]
LONG += ["_", "/", "' ", "\u3000", "\xa0", "z ", "s'"]
SOUP = ["a", "b", "S", "T", "'", "'s", "'ll", "'RE", "n't", " ", "  ", "\n", "\r\n", "\t", "1", "23", "4567", "!", "//"]
SOUP += ["/", "/*", "é", "中", "ก", "Ab", "aB", "HTML", "HTMLParser", "x" * 20, " " * 17, "\n/", "!\n", "!\n/", ";\n//"]
SOUP += ["\n  \n", "  \n", "ſ", "\u212a", "\0", "\u0301", "_", "$", "\\n", "'S'T", "\u3000", "\xa0", "👍"]
LOWER = "abcdefghijklmnopqrstuvwxyz"


@cache
def categories() -> dict[str, list[str]]:
    """The characters of each of Unicode's categories, as Python knows them; without those not assigned."""
    found: dict[str, list[str]] = {}
    for point in range(POINTS):
        found.setdefault(unicodedata.category(chr(point)), []).append(chr(point))
    return {category: chars for category, chars in found.items() if category not in ("Cn", "Co", "Cs")}


def some(draw: Random, alphabet: Sequence[str], most: int, least: int = 1) -> str:
    return "".join(draw.choices(alphabet, k=draw.randint(least, most)))


def mixed(draw: Random, one: Sequence[str], share: float, two: Sequence[str], most: int) -> str:
    """Of the first alphabet that share, the rest of the second."""
    return "".join(draw.choice(one if draw.random() < share else two) for _ in range(draw.randint(1, most)))


def of_categories(draw: Random, names: Sequence[str], share: float, others: str, most: int) -> str:
    chars = [draw.choice(categories()[draw.choice(names)]) for _ in range(most)]
    return mixed(draw, chars, share, others, most)


def code_points(draw: Random) -> str:
    points = (draw.randrange(POINTS - len(SURROGATES)) for _ in range(draw.randint(1, 40)))
    return "".join(chr(point if point < SURROGATES.start else point + len(SURROGATES)) for point in points)


def marks(draw: Random) -> str:
    found = categories()
    return mixed(draw, found["Mn"][:400] + found["Mc"][:100] + found["Me"], 0.4, "aeiouAEI \n'1.กขคअइ", 40)


def run(draw: Random, most: int = 1_500) -> str:
    return draw.choice(LONG) * draw.randint(20, most) + draw.choice(["", "x", " ", "\n"])


def surrogates(draw: Random) -> str:
    return some(draw, [*"a 'sé中👍\n", "\ud83d", "\udc4d", "\udfff", "\ud800", "\ud83d\udc4d"], 30)


KINDS: dict[str, tuple[int, Callable[[Random], str]]] = {
    "assigned characters": (30, lambda draw: of_categories(draw, [*categories()], 1, "", 60)),
    "code points": (14, code_points),
    "ASCII": (50, lambda draw: some(draw, SIGNS, 80)),
    "contractions": (24, lambda draw: mixed(draw, CONTRACTIONS, 0.5, WORDS, 12)),
    "special tokens": (8, lambda draw: mixed(draw, SPECIAL, 0.6, WORDS, 6)),
    "white space": (44, lambda draw: mixed(draw, WHITE_SPACE, 0.7, WORDS, 14)),
    "white space at the end": (18, lambda draw: draw.choice(WORDS) + some(draw, WHITE_SPACE, 6)),
    "marks": (14, marks),
    "emoji": (14, lambda draw: mixed(draw, EMOJI, 0.8, WORDS, 20)),
    "cases": (
        36,
        lambda draw: of_categories(draw, ["Lu", "Ll", "Lt", "Lm", "Lo", "Mn", "Mc"], 0.4, "abcABC'sS /\n1", 24),
    ),
    "digits": (10, lambda draw: of_categories(draw, ["Nd", "Nl", "No"], 0.4, "0123456789 .,a", 24)),
    "runs": (5, run),
    "words of both cases": (4, lambda draw: some(draw, "abcdefghijkLMNOPQRSTUVwxyzß", 400, 30)),
    "long words": (2, lambda draw: some(draw, LOWER, 4_000)),
    "Thai": (2, lambda draw: some(draw, "กขคงจฉ่้ิี", 2_000)),
    "Han": (2, lambda draw: some(draw, "中国人", 2_000)),
    "surrogates": (10, surrogates),
    "soup": (13, lambda draw: some(draw, draw.sample(SOUP, draw.randint(2, len(SOUP))), 100)),
}
"""How many of 300 texts are of a kind, and how one is made."""

EDGES = ["", "\0", "\ufeffhello", "'\u212a", "it'\u017f", "n'ſ'SDn", "\n\t\n", "─❤️", "\u1c89\\u", "-" * 120, "#\t.d^"]


def texts(draw: Random, number: int) -> Iterator[tuple[str, str]]:
    """So many texts, and the kind of each."""
    yield from (("edges", text) for text in EDGES)
    for kind, (share, make) in KINDS.items():
        for _ in range(number * share // 300 + 1):
            yield kind, make(draw)
