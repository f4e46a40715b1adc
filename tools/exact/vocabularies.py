"""The file format of vocabularies, and the way from the public `.tiktoken` files to it and back.

    python tools/exact/vocabularies.py DIRECTORY

DIRECTORY holds `cl100k_base.tiktoken` and `o200k_base.tiktoken`, under these names or under those that tiktoken gives
them in its cache (the SHA-1 of their address). `README.md` beside this file says where to find them.

Every token of more than one byte is made by merging two tokens of lower rank, so its bytes need not be stored: the
ranks of its two parts do. A packed vocabulary is one zlib stream: the 256 single bytes in the order of their ranks;
then for all further tokens the lowest byte of the first part's rank, the middle bytes, the highest ones; and the same
of the second part.
"""

from __future__ import annotations

import base64
import hashlib
import itertools
import sys
import zlib
from pathlib import Path

VOCABULARIES = Path(__file__).parent.parent.parent / "rust" / "ctxfast" / "vocab"
PUBLISHED = {
    "cl100k_base": "223921b76ee99bde995b7ff738513eef100fb51d18c93597a113bcffe865b2a7",
    "o200k_base": "446a9538cb6c348e3516120d7c08b09f57c36495e2acfffe59a5bf8b0cfb1a2d",
}
"""SHA-256 of the public files, as tiktoken checks them."""

ADDRESS = "https://openaipublic.blob.core.windows.net/encodings/{}.tiktoken"
PLANES = 6


def read(file: bytes) -> list[bytes]:
    """The tokens of a `.tiktoken` file by rank. Raises `ValueError` where ranks have gaps."""
    tokens: list[bytes] = []
    for line in file.splitlines():
        token, rank = line.split()
        if int(rank) != len(tokens):
            raise ValueError(f"expected rank {len(tokens)}, got {int(rank)}")
        tokens.append(base64.b64decode(token))
    return tokens


def write(tokens: list[bytes]) -> bytes:
    """The `.tiktoken` file of these tokens."""
    return b"".join(b"%s %d\n" % (base64.b64encode(token), rank) for rank, token in enumerate(tokens))


def parts(token: bytes, ranks: dict[bytes, int]) -> tuple[int, int]:
    """The two tokens whose merge makes this one. Raises `ValueError` if merging the pair of lowest rank does not."""
    pieces = [token[i : i + 1] for i in range(len(token))]
    while len(pieces) > 2:
        pairs = [ranks.get(one + two, len(ranks)) for one, two in itertools.pairwise(pieces)]
        lowest = min(pairs)
        if lowest >= ranks[token]:
            raise ValueError(f"token {ranks[token]} is not reached by merges")
        place = pairs.index(lowest)
        pieces[place : place + 2] = [pieces[place] + pieces[place + 1]]
    return ranks[pieces[0]], ranks[pieces[1]]


def pack(tokens: list[bytes]) -> bytes:
    """A vocabulary in its packed form, not yet compressed."""
    if any(len(token) != 1 for token in tokens[:256]) or any(len(token) < 2 for token in tokens[256:]):
        raise ValueError("expected the 256 bytes first, and no other token of one byte")
    ranks = {token: rank for rank, token in enumerate(tokens)}
    pairs = [parts(token, ranks) for token in tokens[256:]]
    planes = [bytes(pair[part] >> shift & 255 for pair in pairs) for part in (0, 1) for shift in (0, 8, 16)]
    return b"".join([*tokens[:256], *planes])


def compress(packed: bytes) -> bytes:
    """In one zlib stream. Bytes of ranks hardly repeat: short matches cost more than they save, and each plane has its
    own codes. That is 3 % less."""
    stream = zlib.compressobj(9, strategy=zlib.Z_FILTERED)
    size = (len(packed) - 256) // PLANES
    planes = [packed[256 + plane * size : 256 + (plane + 1) * size] for plane in range(PLANES)]
    blocks = [stream.compress(part) + stream.flush(zlib.Z_BLOCK) for part in (packed[:256], *planes)]
    return b"".join(blocks) + stream.flush()


def unpack(packed: bytes) -> list[bytes]:
    """The tokens of a packed vocabulary, by rank."""
    tokens = [packed[i : i + 1] for i in range(256)]
    size = (len(packed) - 256) // PLANES
    planes = [packed[256 + plane * size : 256 + (plane + 1) * size] for plane in range(PLANES)]
    for a0, a1, a2, b0, b1, b2 in zip(*planes, strict=True):
        tokens.append(tokens[a0 | a1 << 8 | a2 << 16] + tokens[b0 | b1 << 8 | b2 << 16])
    return tokens


def packaged(name: str) -> list[bytes]:
    """The tokens of a vocabulary in the repository, by rank. Raises `ValueError` if it is not the published one."""
    tokens = unpack(zlib.decompress((VOCABULARIES / f"{name}.z").read_bytes()))
    check(name, write(tokens))
    return tokens


def check(name: str, file: bytes) -> None:
    found = hashlib.sha256(file).hexdigest()
    if found != PUBLISHED[name]:
        raise ValueError(f"{name}: expected the file with SHA-256 {PUBLISHED[name]}, got {found}")


def main(directory: Path) -> None:
    for name in PUBLISHED:
        cached = hashlib.sha1(ADDRESS.format(name).encode()).hexdigest()
        source = next(file for file in (directory / f"{name}.tiktoken", directory / cached) if file.exists())
        file = source.read_bytes()
        check(name, file)
        packed = pack(read(file))
        check(name, write(unpack(packed)))
        target = VOCABULARIES / f"{name}.z"
        target.write_bytes(compress(packed))
        sys.stdout.write(f"{target.name}: {len(packed):,} bytes, {target.stat().st_size:,} compressed\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]))
