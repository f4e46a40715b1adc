"""The Unicode classes that the split patterns ask for, probed from the pinned tiktoken.

    python tools/exact/unicode_classes.py [--check]

Engines know different versions of Unicode; what counts is what tiktoken's knows. So an encoding is made of 256 single
bytes and a pattern such as `\\p{L}`: what comes out of a text with all characters is the class. `--check` compares with
the file in the repository and writes nothing.

The file is `rust/ctxfast/vocab/classes.bin`: for each 128 code points the number of their block (u8), then the blocks,
a byte of class bits for each code point.
"""

from __future__ import annotations

import sys
from pathlib import Path

from tiktoken import Encoding

FILE = Path(__file__).parent.parent.parent / "rust" / "ctxfast" / "vocab" / "classes.bin"
BLOCK = 128
POINTS = 0x110000
SURROGATES = range(0xD800, 0xE000)
PATTERNS = {
    r"\p{L}": 1,
    r"\p{N}": 2,
    r"\s": 4,
    r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]": 8,
    r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]": 16,
}
CONTRACTED = {"s": "sSſ", "d": "dD", "m": "mM", "t": "tT", "l": "lL", "v": "vV", "e": "eE", "r": "rR"}
"""What matches a letter of a contraction where case is ignored: the scanner has this in its code."""


def members(pattern: str) -> str:
    """All characters that match a pattern of one character."""
    encoding = Encoding(
        "probe", pat_str=pattern, mergeable_ranks={bytes([i]): i for i in range(256)}, special_tokens={}
    )
    everything = "".join(chr(point) for point in range(POINTS) if point not in SURROGATES)
    return encoding.decode(encoding.encode_ordinary(everything))


def probe() -> bytes:
    classes = bytearray(POINTS)
    for pattern, bit in PATTERNS.items():
        for char in members(pattern):
            classes[ord(char)] |= bit
    numbers: dict[bytes, int] = {}
    index = bytearray()
    for start in range(0, POINTS, BLOCK):
        index.append(numbers.setdefault(bytes(classes[start : start + BLOCK]), len(numbers)))
    return bytes(index) + b"".join(numbers)


def check_contractions() -> None:
    for letter, expected in CONTRACTED.items():
        found = members(f"(?i:{letter})")
        if sorted(found) != sorted(expected):
            raise ValueError(f"(?i:{letter}): expected {sorted(expected)}, got {sorted(found)}")


if __name__ == "__main__":
    check_contractions()
    found = probe()
    if "--check" not in sys.argv:
        FILE.write_bytes(found)
    elif FILE.read_bytes() != found:
        sys.exit("classes.bin is not what the installed tiktoken has: run tools/exact/unicode_classes.py")
    sys.stdout.write(f"{FILE.name}: {len(found):,} bytes\n")
