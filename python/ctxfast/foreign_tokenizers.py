"""How tokenizers of other packages count a text: tiktoken's, Hugging Face's. None of these packages is imported."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class _Encoding:
    """An `Encoding` of tiktoken: its ordinary text."""

    tokenizer: Any

    def __call__(self, text: str) -> int:
        return len(self.tokenizer.encode_ordinary(text))


@dataclass(frozen=True)
class _Tokenizer:
    """A `Tokenizer` of tokenizers, as it is set up, without what it adds around a text."""

    tokenizer: Any

    def __call__(self, text: str) -> int:
        return len(self.tokenizer.encode(_well_formed(text), add_special_tokens=False))


@dataclass(frozen=True)
class _Transformers:
    """A tokenizer of transformers: special tokens are ordinary text."""

    tokenizer: Any

    def __call__(self, text: str) -> int:
        encode = self.tokenizer.encode
        text = _well_formed(text)
        return len(encode(text, add_special_tokens=False, split_special_tokens=True, verbose=False))


def _well_formed(text: str) -> str:
    """The text as UTF-16 reads it: a pair of surrogates is a character, one alone is U+FFFD."""
    try:
        text.encode()
    except UnicodeEncodeError:
        return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return text


def counting(tokenizer: object) -> Callable[[str], int]:
    """The function that counts with a tokenizer, which is known by its methods.

    Raises `TypeError` for an object that is none, `ValueError` for one that cuts texts off or fills them up.
    """

    def has(*methods: str) -> bool:
        return all(callable(getattr(tokenizer, method, None)) for method in methods)

    if not isinstance(tokenizer, type):
        if has("encode_ordinary"):
            return _Encoding(tokenizer)
        if has("encode", "convert_tokens_to_ids"):
            return _Transformers(tokenizer)
        if has("encode", "token_to_id", "no_truncation", "no_padding"):
            for setting in ("truncation", "padding"):
                if getattr(tokenizer, setting, None) is not None:
                    raise ValueError(f"tokenizer: expected one without {setting}; call its `no_{setting}()` first")
            return _Tokenizer(tokenizer)
    raise TypeError(
        "tokenizer: expected an Encoding of tiktoken, a Tokenizer of tokenizers or a tokenizer of transformers, "
        f"got `{type(tokenizer).__name__}`"
    )
