"""tiktoken's encodings as the pinned version defines them, with the vocabularies of this repository: no download."""

from __future__ import annotations

from functools import cache
from typing import Literal, get_args
from unittest.mock import patch

import vocabularies
from tiktoken import Encoding
from tiktoken_ext import openai_public

Name = Literal["cl100k_base", "o200k_base", "o200k_harmony"]
NAMES: tuple[Name, ...] = get_args(Name)


@cache
def tiktoken(name: Name) -> Encoding:
    """The encoding of that name."""
    ranks = {token: rank for rank, token in enumerate(tokens(name))}
    with patch.object(openai_public, "load_tiktoken_bpe", lambda *_, **__: ranks):
        return Encoding(**openai_public.ENCODING_CONSTRUCTORS[name]())


@cache
def tokens(name: Name) -> list[bytes]:
    """The tokens of an encoding, by rank."""
    return vocabularies.packaged(name.replace("harmony", "base"))
