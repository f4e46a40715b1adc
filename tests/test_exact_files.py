"""Exact counts with vocabularies from files, tokenizers of other packages and special tokens: as tiktoken and Hugging
Face's tokenizers count."""

from __future__ import annotations

import base64
import json
import pickle
import random
import re
import resource
import sys
from collections.abc import Iterable
from functools import cache
from pathlib import Path
from typing import Any, Literal, get_args

import crafted
import pytest
import vocabularies
from hypothesis import given, settings
from hypothesis import strategies as st
from pinned import NAMES, tiktoken
from tiktoken import Encoding
from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, trainers

from ctxfast import TokenCounter

Grammar = Literal["cl100k", "o200k", "llama3", "qwen2", "tekken"]
GRAMMARS: tuple[Grammar, ...] = get_args(Grammar)
LLAMA3 = (
    r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*"
    r"|\s*[\r\n]+|\s+(?!\S)|\s+"
)
O200K = tiktoken("o200k_base")._pat_str
PATTERNS: dict[Grammar, str] = {
    "cl100k": tiktoken("cl100k_base")._pat_str,
    "o200k": O200K,
    "llama3": LLAMA3,
    "qwen2": LLAMA3.replace("{1,3}", ""),
    "tekken": O200K.replace("(?i:'s|'t|'re|'ve|'m|'ll|'d)?", "").replace("{1,3}", ""),
}
BYTES = [bytes([byte]) for byte in range(256)]
TEXTS = [text for _, text in crafted.texts(random.Random(20), 2_000) if not re.search("[\ud800-\udfff]", text)]
"""tokenizers takes no lone surrogates; `test_exact.py` has them."""
ODD = "aba ab abab xyz xyzab babab 除除 aab xyz1 .xyz"
"""With tokens that merging by rank does not make."""


def tiktoken_file(folder: Path, tokens: list[bytes], name: str = "own.tiktoken") -> Path:
    path = folder / name
    path.write_bytes(vocabularies.write(tokens))
    return path


def encoding(tokens: list[bytes], grammar: Grammar, special: Iterable[str] = ()) -> Encoding:
    ranks = {token: rank for rank, token in enumerate(tokens)}
    control = {token: len(tokens) + place for place, token in enumerate(special)}
    return Encoding("own", pat_str=PATTERNS[grammar], mergeable_ranks=ranks, special_tokens=control)


@pytest.mark.parametrize("grammar", GRAMMARS)
def test_a_tiktoken_file_is_counted_as_tiktoken_counts(grammar: Grammar, tmp_path: Path) -> None:
    tokens = vocabularies.packaged("cl100k_base")[:20_000]
    reference = encoding(tokens, grammar)
    counter = TokenCounter.from_tiktoken_file(tiktoken_file(tmp_path, tokens), grammar)
    for text in TEXTS:
        assert counter.text(text) == len(reference.encode_ordinary(text)), text


def test_the_whole_of_a_public_file_is_the_encoding_in_the_package(tmp_path: Path) -> None:
    path = tiktoken_file(tmp_path, vocabularies.packaged("o200k_base"))
    counter, packaged = TokenCounter.from_tiktoken_file(path, "o200k"), TokenCounter.exact("o200k_base")
    assert all(counter.text(text) == packaged.text(text) for text in TEXTS)
    assert counter != packaged  # though they count alike: it is another file


@settings(max_examples=150)
@given(
    st.lists(st.text("abx除 .", min_size=2, max_size=5), max_size=14, unique=True),
    st.lists(st.text("abx除 .1", max_size=25), min_size=1, max_size=8),
)
def test_any_order_of_tokens_is_counted_as_tiktoken_counts(
    tmp_path_factory: pytest.TempPathFactory, own: list[str], texts: list[str]
) -> None:
    """Also those that no two tokens of lower rank make: a whole piece, or made of tokens of higher rank."""
    tokens = BYTES + [token.encode() for token in own]
    counter = TokenCounter.from_tiktoken_file(tiktoken_file(tmp_path_factory.mktemp("own"), tokens), "llama3")
    reference = encoding(tokens, "llama3")
    for text in [*texts, "".join(own), ODD]:
        assert counter.text(text) == len(reference.encode_ordinary(text)), (own, text)


def trained(grammar: Grammar, ignore_merges: bool = False, **options: Any) -> Tokenizer:
    """A small tokenizer of this grammar."""
    tokenizer = Tokenizer(models.BPE(ignore_merges=ignore_merges, **options))
    split = pre_tokenizers.Split(Regex(PATTERNS[grammar]), "isolated")
    level = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([split, level])
    tokenizer.decoder = decoders.ByteLevel()
    if not options:
        alphabet = pre_tokenizers.ByteLevel.alphabet()
        trainer = trainers.BpeTrainer(
            vocab_size=3_000, max_token_length=40, initial_alphabet=alphabet, show_progress=False
        )
        tokenizer.train_from_iterator([*TEXTS, Path(__file__).read_text()], trainer)
    return tokenizer


def same(tokenizer: Tokenizer, counter: TokenCounter, texts: Iterable[str]) -> None:
    for text in texts:
        expected = len(tokenizer.encode(text, add_special_tokens=False).ids)
        assert counter.text(text) == expected, text


@cache
def own_json(grammar: Grammar) -> str:
    text: str = trained(grammar).to_str()
    return text


def from_json(folder: Path, tokenizer: Tokenizer | dict[str, Any] | str, **options: Any) -> TokenCounter:
    path = folder / "tokenizer.json"
    if isinstance(tokenizer, dict):
        tokenizer = json.dumps(tokenizer)
    path.write_text(tokenizer if isinstance(tokenizer, str) else tokenizer.to_str())
    return TokenCounter.from_tokenizer_json(path, **options)


@pytest.mark.parametrize("ignore_merges", [False, True])
@pytest.mark.parametrize("grammar", GRAMMARS[1:])
def test_a_tokenizer_json_is_counted_as_tokenizers_counts(
    grammar: Grammar, ignore_merges: bool, tmp_path: Path
) -> None:
    file = json.loads(own_json(grammar))
    model = file["model"]
    model["ignore_merges"] = ignore_merges
    for word in ("xyzzy", "Ġxyzzy", "除除"):  # no merge makes them
        model["vocab"].setdefault(word, len(model["vocab"]))
    same(
        Tokenizer.from_str(json.dumps(file)),
        from_json(tmp_path, file),
        [*TEXTS, "xyzzy xyzzy xyzzyx", "don't  \n x"],
    )
    model["merges"] = [" ".join(merge) for merge in model["merges"]]  # the older form
    same(Tokenizer.from_str(json.dumps(file)), from_json(tmp_path, file), TEXTS[:100])


LETTERS = "abcd"


@settings(max_examples=150)
@given(
    st.lists(st.text(LETTERS, min_size=2, max_size=4), min_size=1, max_size=12, unique=True),
    st.randoms(use_true_random=False),
    st.booleans(),
)
def test_any_order_of_merges_is_counted_as_tokenizers_counts(
    tmp_path_factory: pytest.TempPathFactory, words: list[str], draw: random.Random, ignore_merges: bool
) -> None:
    vocab = {char: place for place, char in enumerate(sorted(pre_tokenizers.ByteLevel.alphabet()))}
    vocab |= {word: 256 + place for place, word in enumerate(words)}
    merges = [(word[:cut], word[cut:]) for word in words for cut in range(1, len(word))]
    merges = [merge for merge in merges if merge[0] in vocab and merge[1] in vocab]
    draw.shuffle(merges)
    tokenizer = trained("llama3", ignore_merges, vocab=vocab, merges=merges)
    counter = from_json(tmp_path_factory.mktemp("own"), tokenizer)
    texts = ["".join(draw.choices(LETTERS, k=draw.randint(1, 12))) for _ in range(30)]
    same(tokenizer, counter, [*words, *texts, "".join(draw.choices(words, k=300))])


def test_normal_form_c(tmp_path: Path) -> None:
    file = json.loads(own_json("qwen2"))
    file["normalizer"] = {"type": "NFC"}
    tokenizer, counter = Tokenizer.from_str(json.dumps(file)), from_json(tmp_path, file)
    texts = ["e\u0301t\u00e9", "\u1100\u1161\u11a8 \uac00\u11a8", "\u212b", "か\u3099", "a\u0323\u0307", "x" * 99 + "é"]
    same(tokenizer, counter, [*texts, *TEXTS[:200]])
    assert counter.text("e\u0301") == counter.text("\u00e9")
    assert counter.fits("e\u0301" * 1000, counter.text("é" * 1000))
    assert not counter.fits("e\u0301" * 1000, counter.text("é" * 1000) - 1)
    assert counter.count_up_to("e\u0301" * 100_000, 10) == 11
    file["normalizer"] = {"type": "Sequence", "normalizers": []}
    assert from_json(tmp_path, file).text("e\u0301") == 2
    assert normalizers.NFC().normalize_str("e\u0301") == "é"


def test_tekken_json(tmp_path: Path) -> None:
    tokens = vocabularies.packaged("cl100k_base")[:5_000]
    file = {
        "config": {"pattern": PATTERNS["tekken"], "default_vocab_size": 4_500, "default_num_special_tokens": 500},
        "vocab": [
            {"rank": rank, "token_bytes": base64.b64encode(token).decode(), "token_str": None}
            for rank, token in enumerate(tokens)
        ],
        "special_tokens": [{"rank": 0, "token_str": "[INST]", "is_control": True}],
    }
    counter, reference = from_json(tmp_path, file), encoding(tokens[:4_000], "tekken")
    for text in TEXTS:
        assert counter.text(text) == len(reference.encode_ordinary(text)), text
    assert from_json(tmp_path, file, special_tokens="control").text("[INST]a[INST]") == 3
    file["vocab"] = file["vocab"][:300]  # type: ignore[index]
    with pytest.raises(ValueError, match=r"tokenizer.json: vocab: expected 4500 less 500 tokens, got 300"):
        from_json(tmp_path, file)


# special tokens

SPECIAL_TEXT = ["<|endoftext|>", "<|fim_prefix|>", "<|start|>", "<|reserved_200013|>", "<|", "|>", "endoftext", "<"]


@pytest.mark.parametrize("name", NAMES)
@settings(max_examples=150)
@given(parts=st.lists(st.sampled_from([*SPECIAL_TEXT, *crafted.WORDS, "\n ", "  ", "中", "\ud83d"]), max_size=12))
def test_special_tokens_are_those_of_tiktoken(name: Any, parts: list[str]) -> None:
    counter, text = TokenCounter.exact(name, special_tokens="control"), "".join(parts)
    tokens = len(tiktoken(name).encode(text, allowed_special="all"))
    assert counter.text(text) == tokens
    assert counter.fits(text, tokens)
    assert tokens == 0 or not counter.fits(text, tokens - 1)


@pytest.mark.parametrize("name", NAMES)
def test_the_lists_of_special_tokens_are_tiktoken_s(name: Any) -> None:
    counter = TokenCounter.exact(name, special_tokens="control")
    special = tiktoken(name).special_tokens_set
    assert all(counter.text(token) == 1 for token in special)
    for number in (199_997, 199_998, 200_002, 200_012, 200_018, 201_087, 201_088):
        token = f"<|reserved_{number}|>"
        assert (counter.text(token) == 1) == (token in special), token


def test_special_tokens_of_files(tmp_path: Path) -> None:
    tokens = vocabularies.packaged("cl100k_base")[:2_000]
    path = tiktoken_file(tmp_path, tokens)
    special = ["<s>", "</s>", "[INST]", "é[中]"]
    counter = TokenCounter.from_tiktoken_file(path, "llama3", special_tokens=special)
    reference = encoding(tokens, "llama3", special)
    for text in ("", "<s>", "<s><s>", "a  <s>  b\n </s>x[INST", "é[中]é[中", "<s", "中<s>👍[INST]"):
        assert counter.text(text) == len(reference.encode(text, allowed_special="all")), text
    assert TokenCounter.from_tiktoken_file(path, "llama3", special_tokens={"<s>": 7, "[INST]": 8}).text("<s>") == 1
    longest = TokenCounter.from_tiktoken_file(path, "llama3", special_tokens=["<s>", "<s>>", "<"])
    assert [longest.text(text) for text in ("<s>>", "<s>", "<s")] == [1, 1, 2]


def test_added_tokens_are_those_of_tokenizers(tmp_path: Path) -> None:
    tokenizer = trained("llama3")
    tokenizer.add_special_tokens(["<|end|>", "<|end|>>", "[é]"])
    tokenizer.add_tokens(["<tool>", "ool><"])
    counter = from_json(tmp_path, tokenizer, special_tokens="control")
    texts = ["<|end|>>x<|end|>", "a <tool>  <tool><tool>", "<tool><|end|>", "[é]\n\n [é", "<|end|"]
    same(tokenizer, counter, [*texts, *TEXTS[:100]])
    assert from_json(tmp_path, tokenizer).text("<|end|>") > 1


def test_counting_stops_at_a_limit_with_special_tokens() -> None:
    counter = TokenCounter.exact("o200k_harmony", special_tokens="control")
    text = "<|start|>some words<|end|>" * 50_000
    assert counter.text(text) == 200_000
    assert counter.count_up_to(text, 100) == 101
    assert counter.count_up_to("<|reserved_201087|>" * 10, 10) == 10
    assert not counter.fits("a" * 4_000_000, 8_192)
    head = counter.head(text, 5)
    assert text.startswith(head)
    assert 0 < counter.text(head) <= 5
    assert counter.batch(["<|end|>", "x"]) == [1, 1]


# counters are values


def test_counters_from_files_are_values(tmp_path: Path) -> None:
    tokens = vocabularies.packaged("cl100k_base")[:300]
    path = tiktoken_file(tmp_path, tokens)
    counter = TokenCounter.from_tiktoken_file(path, "qwen2")
    assert repr(counter) == f"TokenCounter.from_tiktoken_file({str(path)!r}, grammar='qwen2')"
    special = TokenCounter.from_tiktoken_file(str(path), "qwen2", special_tokens=["<s>"], message_overhead=3)
    assert repr(special).endswith("grammar='qwen2', special_tokens=('<s>',), message_overhead=3)")
    json_counter = from_json(tmp_path, own_json("qwen2"))
    assert repr(json_counter) == f"TokenCounter.from_tokenizer_json({str(tmp_path / 'tokenizer.json')!r})"
    control = TokenCounter.exact("o200k_base", special_tokens="control")
    assert repr(control) == "TokenCounter.exact('o200k_base', special_tokens='control')"
    assert control != TokenCounter.exact("o200k_base") == TokenCounter.exact("o200k_base", special_tokens="text")
    for one in (counter, special, json_counter, control):
        for again in (pickle.loads(pickle.dumps(one)), eval(repr(one))):
            assert again == one
            assert hash(again) == hash(one)
            assert again.text("<s> x") == one.text("<s> x")
    assert special != counter
    assert counter != TokenCounter.from_tiktoken_file(path, "llama3")
    copy = tiktoken_file(tmp_path, tokens, "copy.tiktoken")
    assert TokenCounter.from_tiktoken_file(copy, "qwen2") == counter
    assert TokenCounter.from_tiktoken_file(tiktoken_file(tmp_path, tokens[:290]), "qwen2") != counter
    assert len({counter, special, json_counter, control}) == 4
    path.unlink()
    with pytest.raises(FileNotFoundError):
        pickle.loads(pickle.dumps(counter))
    assert counter.text("hello") > 0


def test_messages_have_frames(tmp_path: Path) -> None:
    counter = TokenCounter.from_tiktoken_file(tiktoken_file(tmp_path, BYTES), "llama3", media_tokens=7)
    assert counter.message({"role": "user", "content": "abc"}) == 3 + 4


# tokenizers of other packages


class Transformers:
    """The methods of a fast tokenizer of transformers that matter."""

    def encode(self, text: str, *, add_special_tokens: bool, split_special_tokens: bool, verbose: bool) -> list[int]:
        assert (add_special_tokens, split_special_tokens, verbose) == (False, True, False)
        return [len(word) for word in text.encode().split()]

    def convert_tokens_to_ids(self, token: str) -> int:
        return len(token)


def test_tokenizers_of_other_packages_count_through_their_own_methods() -> None:
    o200k, exact = tiktoken("o200k_base"), TokenCounter.exact("o200k_base")
    counter = TokenCounter.from_tokenizer(o200k)
    assert all(counter.text(text) == exact.text(text) for text in [*TEXTS[:50], "<|endoftext|>", "\ud83d"])
    assert counter.message({"role": "user", "content": "hello world"}) == 2 + 4
    assert counter == TokenCounter.from_tokenizer(o200k) != TokenCounter.from_callable(len)
    assert hash(counter) == hash(TokenCounter.from_tokenizer(o200k))
    assert repr(counter) == "TokenCounter.from_tokenizer(<Encoding 'o200k_base'>)"
    tokenizer = trained("llama3")
    own = TokenCounter.from_tokenizer(tokenizer, message_overhead=1)
    same(tokenizer, own, TEXTS[:50])
    assert own.text("\ud83d\udc4d") == own.text("👍")
    assert own.text("\ud83d") == own.text("\ufffd")
    assert pickle.loads(pickle.dumps(own)).text("some words") == own.text("some words")
    assert TokenCounter.from_tokenizer(Transformers()).text("three words \ud83d") == 3


def test_what_is_no_tokenizer_is_refused() -> None:
    for other in (len, "o200k_base", None, Encoding, object(), models.BPE()):
        with pytest.raises(TypeError, match=r"tokenizer: expected an Encoding of tiktoken, a Tokenizer .*, got `"):
            TokenCounter.from_tokenizer(other)
    tokenizer = trained("llama3")
    tokenizer.enable_truncation(10)
    with pytest.raises(ValueError, match=r"tokenizer: expected one without truncation; call its `no_truncation\(\)`"):
        TokenCounter.from_tokenizer(tokenizer)
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    with pytest.raises(ValueError, match="without padding"):
        TokenCounter.from_tokenizer(tokenizer)


# what is refused


def test_options_are_refused(tmp_path: Path) -> None:
    path = tiktoken_file(tmp_path, BYTES)
    with pytest.raises(ValueError, match=r"grammar: expected one of cl100k, o200k, llama3, qwen2, tekken, got 'gpt2'"):
        TokenCounter.from_tiktoken_file(path, "gpt2")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"special_tokens: expected 'text' or 'control', got 'all'"):
        TokenCounter.exact("o200k_base", special_tokens="all")  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"special_tokens: expected strings in a list, .*, got `str`"):
        TokenCounter.from_tiktoken_file(path, "llama3", special_tokens="<s>")
    with pytest.raises(TypeError, match=r"special_tokens\[1\]: expected a string, got `int`"):
        TokenCounter.from_tiktoken_file(path, "llama3", special_tokens=["<s>", 7])  # type: ignore[list-item]
    for bad in ("", "\ud83d"):
        with pytest.raises(ValueError, match=r"special_tokens\[0\]: expected a text, got '"):
            TokenCounter.from_tiktoken_file(path, "llama3", special_tokens=[bad])
    for no_path in (7, None, b"a"):
        with pytest.raises(TypeError, match="path: expected a string or a path, got `"):
            TokenCounter.from_tokenizer_json(no_path)  # type: ignore[arg-type]
    with pytest.raises(FileNotFoundError, match=r"nowhere\.json"):
        TokenCounter.from_tokenizer_json(tmp_path / "nowhere.json")
    with pytest.raises(IsADirectoryError):
        TokenCounter.from_tokenizer_json(tmp_path)


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        (b"", "expected the 256 single bytes, got 0 tokens"),
        (b"AA== 0\n@@@@ 1\n", 'line 2: expected a token as base64, a space and a rank, got "@@@@ 1"'),
        (b"AA== 0\nAQ== 7\n", 'line 2: expected rank 1, got "AQ== 7"'),
        (b"AA== -1\n", "line 1: expected a token as base64"),
        (b"AA== 99999999999999999999999\n", "line 1: expected a token as base64"),
        (b"\xff\xfe\0\0", "line 1: expected a token as base64"),
        (b"version https://git-lfs.github.com/spec/v1\n", "line 1: expected a token as base64"),
        (vocabularies.write([*BYTES, b"ab", b"ab"]), 'rank 257: expected a token that is not there already, got b"ab"'),
        (vocabularies.write([*BYTES, b"a" * 1025]), "rank 256: expected 2 to 1024 bytes, got 1025"),
        (vocabularies.write([*BYTES, b""]), "line 257: expected a token as base64"),
        (vocabularies.write([*BYTES[:255], b"ab"]), "rank 255: expected the 256 single bytes before others"),
    ],
)
def test_files_that_are_no_vocabulary_are_refused(content: bytes, problem: str, tmp_path: Path) -> None:
    path = tmp_path / "bad.tiktoken"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"^bad\.tiktoken: ") as raised:
        TokenCounter.from_tiktoken_file(path, "llama3")
    assert problem in str(raised.value)


def changed(*path: str | int, to: object) -> dict[str, Any]:
    file = json.loads(own_json("llama3"))
    place = file
    for step in path[:-1]:
        place = place[step]
    place[path[-1]] = to
    assert isinstance(file, dict)
    return file


def test_what_is_not_known_of_a_tokenizer_is_refused(tmp_path: Path) -> None:
    split = ("pre_tokenizer", "pretokenizers", 0)
    cases: list[tuple[dict[str, Any], str]] = [
        (changed("model", "type", to="Unigram"), 'model.type: expected "BPE", got "Unigram"'),
        (changed("model", "dropout", to=0.1), "model.dropout: expected null or 0 or 0.0, got 0.1"),
        (
            changed("model", "end_of_word_suffix", to="</w>"),
            'model.end_of_word_suffix: expected null or "", got "</w>"',
        ),
        (changed("model", "ignore_merges", to=1), "model.ignore_merges: expected false or true or null, got 1"),
        (changed("model", "merges", 17, to=["a", "b", "c"]), "model.merges[17]: expected two tokens, got ["),
        (changed("model", "merges", 17, to="a"), 'model.merges[17]: expected two tokens, got "a"'),
        (changed("model", "merges", 17, to=["a", "👍"]), "model.merges[17]: expected two tokens of `vocab` that make"),
        (changed("model", "merges", to={}), "model.merges: expected JSON, got invalid type: map, expected a list"),
        (
            changed("model", "vocab", to={"a": 0}),
            "model.vocab: expected a token for each byte, got none for 'Ā' (byte 0)",
        ),
        (changed("model", "vocab", "a", to=-1), "model.vocab: expected JSON, got invalid value"),
        (changed("normalizer", to={"type": "NFKC"}), 'normalizer: expected null or NFC, got {"type":"NFKC"}'),
        (changed("pre_tokenizer", to=None), "pre_tokenizer: expected a Sequence of a Split and a ByteLevel"),
        (
            changed(*split, "pattern", to={"Regex": r"\s+"}),
            "pre_tokenizer.pretokenizers[0].pattern: expected the pattern",
        ),
        (
            changed(*split, "pattern", to={"String": " "}),
            "pre_tokenizer.pretokenizers[0].pattern: expected the pattern",
        ),
        (changed(*split, "behavior", to="Removed"), "pre_tokenizer: expected a Sequence"),
        (changed("pre_tokenizer", "pretokenizers", 1, "use_regex", to=True), "pre_tokenizer: expected a Sequence"),
        (changed("pre_tokenizer", "pretokenizers", 1, "add_prefix_space", to=True), "pre_tokenizer: expected"),
        ({"version": "1.0"}, "expected `model`, got none"),
    ]
    twice = json.loads(own_json("llama3"))
    twice["model"]["merges"].append(twice["model"]["merges"][3])
    cases.append((twice, "expected each merge once, got ["))
    for file, problem in cases:
        with pytest.raises(ValueError, match=r"^tokenizer\.json: ") as raised:
            from_json(tmp_path, file)
        assert problem in str(raised.value)
    added = {"id": 1, "content": "<s>", "single_word": False, "lstrip": True, "rstrip": False, "normalized": False}
    file = changed("added_tokens", to=[added | {"special": True}])
    assert from_json(tmp_path, file).text("<s>") > 1
    with pytest.raises(ValueError, match=r"added_tokens\[0\].lstrip: expected false, got true"):
        from_json(tmp_path, file, special_tokens="control")


def test_damaged_files_never_panic_and_memory_stays_bounded(tmp_path: Path) -> None:
    whole = own_json("llama3")
    draw = random.Random(7)
    for _ in range(60):
        place = draw.randrange(len(whole))
        for damaged in (whole[:place], whole[:place] + draw.choice('"[]{},:0x\\') + whole[place + 1 :]):
            problem = ""
            try:
                assert from_json(tmp_path, damaged).text("hello world") > 0
            except ValueError as error:
                problem = str(error)
            assert problem.startswith("tokenizer.json: " if problem else "")
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    for hostile in (
        "[" * 1_000_000,
        '{"model":' * 100_000,
        '{"model": {"type": "BPE", "vocab": {}, "merges": [' + "0," * 3_000_000 + "0]}}",
        '{"a": [' + "0," * 3_000_000 + "0]}",
        '{"model": {}, "pre_tokenizer": [' + "0," * 3_000_000 + "0]}",
        '"' + "a" * 5_000_000 + '"',
        "\ufeff{}",
        "null",
    ):
        with pytest.raises(ValueError, match=r"^tokenizer\.json: "):
            from_json(tmp_path, hostile)
    if sys.platform == "linux":
        assert (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024 < 200  # MiB


def test_files_have_a_largest_size(tmp_path: Path) -> None:
    path = tmp_path / "large.json"
    with path.open("wb") as file:
        file.truncate((1 << 26) + 1)
    with pytest.raises(ValueError, match=r"large\.json: expected at most 67108864 bytes, got more"):
        TokenCounter.from_tokenizer_json(path)
