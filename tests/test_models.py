"""The model table: the names that people write find their rows, nothing is guessed, images cost what is published."""

from __future__ import annotations

import dataclasses
import itertools
import json
import math
import pickle
import re
import statistics
import subprocess
import sys
import time
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import recorded
import tiktoken.model
from hypothesis import given
from hypothesis import strategies as st
from recorded import Recorded

import ctxfast
from ctxfast import ModelInfo, TokenCounter, model_info
from ctxfast.errors import UnknownModelWarning
from ctxfast.models import Frame, ImageRule, ToolOverhead, known_models
from ctxfast.reference.declaring import declaration

TABLE: dict[str, Any] = json.loads(Path(ctxfast.__file__).with_name("models.json").read_text(encoding="utf-8"))
NAMES = known_models()

# What providers, gateways and frameworks call models: name, maker, family, context window.
SEEN = [
    tuple(line.split())
    for line in """
    gpt-3.5-turbo                                            openai    cl100k         16385
    gpt-35-turbo                                             openai    cl100k         4097
    gpt-3.5-turbo-0125                                       openai    cl100k         16385
    gpt-4                                                    openai    cl100k         8192
    gpt-4-0613                                               openai    cl100k         8192
    gpt-4-32k                                                openai    cl100k         32768
    gpt-4-1106-preview                                       openai    cl100k         128000
    gpt-4-turbo-2024-04-09                                   openai    cl100k         128000
    gpt-4o                                                   openai    o200k          128000
    GPT-4o                                                   openai    o200k          128000
    gpt-4o-2024-08-06                                        openai    o200k          128000
    chatgpt-4o-latest                                        openai    o200k          128000
    openai/gpt-4o-mini                                       openai    o200k          128000
    azure/gpt-4o-mini-2024-07-18                             openai    o200k          128000
    openai:gpt-4.1                                           openai    o200k          1047576
    gpt-4.1-2025-04-14                                       openai    o200k          1047576
    gpt-4.1-mini                                             openai    o200k          1047576
    ft:gpt-4.1-nano-2025-04-14:company::AbCdEf               openai    o200k          1047576
    github_copilot/gpt-4.1                                   openai    o200k          1047576
    o1                                                       openai    o200k          200000
    o1-mini-2024-09-12                                       openai    o200k          128000
    o3-mini                                                  openai    o200k          200000
    azure/o3-2025-04-16                                      openai    o200k          200000
    o4-mini                                                  openai    o200k          200000
    gpt-5                                                    openai    o200k          400000
    gpt-5-2025-08-07                                         openai    o200k          400000
    openrouter/openai/gpt-5-mini                             openai    o200k          400000
    gpt-5-chat-latest                                        openai    o200k          128000
    gpt-5-codex                                              openai    o200k          400000
    gpt-5.1                                                  openai    o200k          400000
    gpt-5.1-codex-max                                        openai    o200k          400000
    azure/responses/gpt-5.2                                  openai    o200k          400000
    gpt-5.3-codex-spark                                      openai    o200k          128000
    gpt-5.4-2026-03-05                                       openai    o200k          1050000
    gpt-5.5                                                  openai    o200k          1050000
    gpt-5.6-sol                                              openai    o200k          1050000
    bedrock/openai.gpt-5.6-sol                               openai    o200k          1050000
    openai/gpt-6-astra                                       openai    o200k          1050000
    gpt-6.2-sol                                              openai    o200k          1050000
    groq/openai/gpt-oss-120b                                 openai    o200k          131072
    openai.gpt-oss-20b-1:0                                   openai    o200k          131072
    gpt-oss:20b                                              openai    o200k          131072
    claude-2.1                                               anthropic claude_legacy  200000
    anthropic.claude-v2:1                                    anthropic claude_legacy  200000
    claude-3-opus-20240229                                   anthropic claude_v3      200000
    anthropic.claude-3-haiku-20240307-v1:0                   anthropic claude_v3      200000
    claude-3-5-sonnet-latest                                 anthropic claude_v3      200000
    openrouter/anthropic/claude-3.5-sonnet:beta              anthropic claude_v3      200000
    vertex_ai/claude-3-5-sonnet-v2@20241022                  anthropic claude_v3      200000
    us.anthropic.claude-3-7-sonnet-20250219-v1:0             anthropic claude_v3      200000
    claude-sonnet-4                                          anthropic claude_v3      200000
    claude-4-sonnet                                          anthropic claude_v3      200000
    claude-sonnet-4-20250514[1m]                             anthropic claude_v3      1000000
    bedrock/us.anthropic.claude-opus-4-1-20250805-v1:0       anthropic claude_v3      200000
    arn:aws:bedrock:us-east-1:123456789012:inference-profile/us.anthropic.claude-sonnet-4-5-20250929-v1:0 \
                                                             anthropic claude_v3      200000
    claude-sonnet-4-5-20250929                               anthropic claude_v3      200000
    claude-sonnet-4.5                                        anthropic claude_v3      200000
    claude-4.5-sonnet                                        anthropic claude_v3      200000
    anthropic/claude-haiku-4.5                               anthropic claude_v3      200000
    claude-opus-4-5@20251101                                 anthropic claude_v3      200000
    databricks/databricks-claude-sonnet-4-5                  anthropic claude_v3      200000
    claude-opus-4-6                                          anthropic claude_v3      1000000
    opus-plan/claude-opus-4-6                                anthropic claude_v3      1000000
    claude-sonnet-4-6                                        anthropic claude_v3      1000000
    claude-opus-4-7-20260416                                 anthropic claude_v47     1000000
    anthropic/claude-opus-4.8                                anthropic claude_v47     1000000
    global.anthropic.claude-opus-5                           anthropic claude_v47     1000000
    claude-sonnet-5                                          anthropic claude_v47     1000000
    azure_ai/claude-opus-5-5                                 anthropic claude_v47     1000000
    vertex_ai/claude-haiku-5-5@default                       anthropic claude_v47     1000000
    claude-fable-5-1                                         anthropic claude_v47     1000000
    gemini/gemini-1.5-pro-002                                google    gemma3         2097152
    gemini-1.5-flash                                         google    gemma3         1048576
    models/gemini-2.0-flash-001                              google    gemma3         1048576
    google-gla:gemini-2.5-pro                                google    gemma3         1048576
    vertex_ai/gemini-2.5-flash-preview-05-20                 google    gemma3         1048576
    gemini-2.5-flash-lite-preview-09-2025                    google    gemma3         1048576
    google/gemini-3-pro-preview                              google    gemma3         1048576
    gemini-3.1-pro-preview                                   google    gemma3         1048576
    gemini-3.8-flash                                         google    gemma3         1048576
    gemini-flash-latest                                      google    gemma3         1048576
    gemini-4-argon                                           google    gemma3         1048576
    ollama/gemma3:27b                                        google    gemma3         131072
    google/gemma-3n-e4b-it:free                              google    gemma3         32768
    google.gemma-4-31b                                       google    gemma3         262144
    llama3-8b-8192                                           meta      llama3         8192
    meta.llama3-70b-instruct-v1:0                            meta      llama3         8192
    ollama/llama3.1:8b-instruct-q4_K_M                       meta      llama3         128000
    together_ai/meta-llama/Meta-Llama-3.1-70B-Instruct-Turbo meta      llama3         128000
    fireworks_ai/accounts/fireworks/models/llama-v3p1-405b-instruct meta llama3       128000
    groq/llama-3.3-70b-versatile                             meta      llama3         128000
    @cf/meta/llama-3.2-11b-vision-instruct                   meta      llama3         128000
    us.meta.llama3-3-70b-instruct-v1:0                       meta      llama3         128000
    unsloth/Llama-3.2-3B-Instruct-bnb-4bit                   meta      llama3         128000
    meta-llama/Llama-4-Maverick-17B-128E-Instruct-FP8        meta      llama3         1000000
    us.meta.llama4-scout-17b-instruct-v1:0                   meta      llama3         3500000
    meta/muse-spark-1.2                                      meta      llama3         1048576
    mistral/mistral-large-latest                             mistral   mistral_tekken 262144
    mistral-large-2411                                       mistral   mistral_tekken 128000
    mistral.mistral-large-2402-v1:0                          mistral   mistral_tekken 32000
    mistral:7b-instruct                                      mistral   mistral_tekken 32000
    mistralai/Mistral-Small-3.2-24B-Instruct-2506            mistral   mistral_tekken 128000
    mistral-medium-latest                                    mistral   mistral_tekken 262144
    mistral/codestral-2508                                   mistral   mistral_tekken 128000
    devstral-medium-latest                                   mistral   mistral_tekken 256000
    mistral/magistral-small-latest                           mistral   mistral_tekken 128000
    mistralai/Mixtral-8x7B-Instruct-v0.1                     mistral   mistral_tekken 32000
    pixtral-large-latest                                     mistral   mistral_tekken 128000
    deepseek-chat                                            deepseek  deepseek_v3    131072
    deepseek/deepseek-reasoner                               deepseek  deepseek_v3    131072
    deepinfra/deepseek-ai/DeepSeek-V3-0324                   deepseek  deepseek_v3    65536
    openrouter/deepseek/deepseek-r1:free                     deepseek  deepseek_v3    65536
    deepseek.v3-v1:0                                         deepseek  deepseek_v3    65536
    us.deepseek.r1-v1:0                                      deepseek  deepseek_v3    65536
    deepseek-ai/DeepSeek-V3.1-Terminus                       deepseek  deepseek_v3    128000
    deepseek-v4-flash                                        deepseek  deepseek_v3    1000000
    groq/deepseek-r1-distill-llama-70b                       deepseek  llama3         131072
    DeepSeek-R1-Distill-Qwen-32B-GGUF                        deepseek  qwen3          131072
    Qwen/Qwen2.5-72B-Instruct-Turbo                          qwen      qwen3          32768
    qwen2.5-coder:32b                                        qwen      qwen3          32768
    dashscope/qwen-max                                       qwen      qwen3          30720
    qwen/qwen3-32b                                           qwen      qwen3          40960
    Qwen/Qwen3-235B-A22B-Instruct-2507-FP8                   qwen      qwen3          262144
    qwen.qwen3-coder-480b-a35b-v1:0                          qwen      qwen3          262144
    openrouter/qwen/qwen3-coder:free                         qwen      qwen3          262144
    qwen3-max-preview                                        qwen      qwen3          262144
    Qwen/Qwen3.5-397B-A17B                                   qwen      qwen3          262144
    dashscope/qwen3.5-plus                                   qwen      qwen3          1000000
    moonshot/kimi-k2-0711-preview                            moonshot  deepseek_v3    131072
    groq/moonshotai/kimi-k2-instruct-0905                    moonshot  deepseek_v3    262144
    fireworks_ai/kimi-k2p5                                   moonshot  deepseek_v3    262144
    moonshot.kimi-k2-thinking                                moonshot  deepseek_v3    262144
    moonshotai/Kimi-K3                                       moonshot  deepseek_v3    1000000
    zai-org/GLM-4.5-Air-FP8                                  zhipu     deepseek_v3    128000
    z-ai/glm-4.6:exacto                                      zhipu     deepseek_v3    200000
    azure_ai/FW-GLM-5.1                                      zhipu     deepseek_v3    200000
    zai/glm-5.3                                              zhipu     deepseek_v3    1000000
    minimax/MiniMax-M1                                       minimax   deepseek_v3    1000000
    minimax.minimax-m2                                       minimax   deepseek_v3    196608
    litellm_proxy/minimax/MiniMax-M2.5                       minimax   deepseek_v3    196608
    xai/grok-2-1212                                          xai       o200k          131072
    grok-3-mini-fast-beta                                    xai       o200k          131072
    x-ai/grok-4-fast:free                                    xai       o200k          2000000
    xai/grok-code-fast-1                                     xai       o200k          256000
    grok-4-0709                                              xai       o200k          256000
    grok-4.5                                                 xai       o200k          500000
    """.replace("\\\n", " ").splitlines()
    if line.strip()
]


@pytest.mark.parametrize(("name", "provider", "family", "window"), SEEN, ids=[row[0] for row in SEEN])
def test_names_as_they_are_seen(name: str, provider: str, family: str, window: str) -> None:
    info = model_info(name)
    assert (info.name, info.known) == (name, True)
    assert (info.provider, info.family, info.context_window) == (provider, family, int(window))


def test_as_many_names_as_promised() -> None:
    assert len(SEEN) >= 120
    assert len({row[0] for row in SEEN}) == len(SEEN)
    assert 80 <= len(TABLE["rows"]) <= 200


# ---------------------------------------------------------------- the table itself


def test_every_name_finds_its_own_row() -> None:
    for row in TABLE["rows"]:
        for name in row["names"]:
            info = model_info(name)
            expected = (row["window"], row.get("input"), row.get("output"), TABLE["sources"][row["source"]]["name"])
            assert (info.context_window, info.input_limit, info.max_output_tokens, info.source) == expected, name
            assert info.known, name
            assert info.provider == TABLE["groups"][row["group"]]["provider"], name


def test_no_name_stands_twice() -> None:
    spelt = [re.sub(r"[^a-z0-9]+", "-", name.lower()) for name in NAMES]
    assert sorted(spelt) == sorted(set(spelt))


def test_every_row_is_plausible() -> None:
    for row in TABLE["rows"]:
        assert set(row) <= {"names", "group", "window", "input", "output", "source"}
        window = row["window"]
        assert 2_048 <= window <= 10_000_000
        assert 0 < row.get("output", 1) <= window
        assert 0 < row.get("input", 1) <= window
        info = model_info(row["names"][0])
        assert date(2025, 1, 1) <= date.fromisoformat(info.date) <= date.fromisoformat(TABLE["date"])
        assert info.source
    for group in TABLE["groups"].values():
        TokenCounter.estimator(group["family"], message_overhead=0)
        assert 0.8 <= group.get("scale", 1.0) <= 1.5
        assert 0 < group["pdf_page_tokens"] < 10_000
        assert 0 < group["audio_tokens_per_second"] < 100


def test_nothing_in_the_table_is_unused() -> None:
    used = {row["group"] for row in TABLE["rows"] + TABLE["makers"]} | {"unknown", "unknown_openai"}
    assert used == set(TABLE["groups"])
    assert {row["source"] for row in TABLE["rows"]} == set(TABLE["sources"])
    for key, groups in (("frame", "frames"), ("tools", "tools"), ("images", "images")):
        assert {group[key] for group in TABLE["groups"].values()} == set(TABLE[groups]), groups


def test_all_makers_are_there() -> None:
    makers = {TABLE["groups"][row["group"]]["provider"] for row in TABLE["rows"]}
    assert " ".join(sorted(makers)) == "anthropic deepseek google meta minimax mistral moonshot openai qwen xai zhipu"


def test_loaded_once_and_not_by_importing_ctxfast() -> None:
    code = """
import sys, ctxfast
assert "ctxfast.models" not in sys.modules and "json" not in sys.modules
import ctxfast.models
assert ctxfast.models._table.cache_info().currsize == 0
ctxfast.model_info("gpt-5"), ctxfast.model_info("gpt-4o")
assert ctxfast.models._table.cache_info().misses == 1
"""
    subprocess.run([sys.executable, "-c", code], check=True, timeout=60)


# ---------------------------------------------------------------- what is not in the table


@pytest.mark.parametrize(
    ("name", "provider", "family", "scale"),
    [
        ("gpt-9.9", "openai", "o200k", 1.0),  # not gpt-9 in another size: another model
        ("gpt-5.9-mini", "openai", "o200k", 1.0),
        ("gpt-5-zeta", "openai", "o200k", 1.0),
        ("o6-mini", "openai", "o200k", 1.0),
        ("claude-opus-9", "anthropic", "claude_v47", 1.0),
        ("claude-opus-4-9", "anthropic", "claude_v47", 1.0),
        ("anthropic/brand-new", "anthropic", "claude_v47", 1.0),
        ("gemini-9-neon", "google", "gemma3", 1.0),
        ("Qwen3.9-8B", "qwen", "qwen3", 1.0),
        ("llama-3-9-70b", "meta", "llama3", 1.0),
        ("azure/our-deployment", "unknown", "o200k", 1.0),
        ("openai/our-own", "unknown", "o200k", 1.0),
        ("openai:our-own", "unknown", "o200k", 1.0),
        ("our-own", "unknown", "deepseek_v3", 1.2),
        ("NousResearch/Hermes-3-Llama-3.1-70B", "unknown", "deepseek_v3", 1.2),
        ("my-gpt-4o", "unknown", "deepseek_v3", 1.2),
        ("/", "unknown", "deepseek_v3", 1.2),
        ("\u0e44\u0e17\u0e22 \U0001f600", "unknown", "deepseek_v3", 1.2),
    ],
)
def test_unknown_models_have_no_window(name: str, provider: str, family: str, scale: float) -> None:
    info = model_info(name)
    assert not info.known
    assert (info.context_window, info.input_limit, info.max_output_tokens) == (None, None, None)
    assert (info.provider, info.family, info.scale) == (provider, family, scale)


def test_a_window_that_the_name_states() -> None:
    assert model_info("claude-sonnet-4-5[1m]").context_window == 1_000_000
    assert model_info("anthropic/claude-sonnet-4-5[1M]").context_window == 1_000_000
    assert model_info("gpt-5[200k]").context_window == 200_000
    assert model_info("gpt-5[200k]").input_limit is None
    assert model_info("our-own[64k]").context_window == 64_000
    assert not model_info("our-own[64k]").known
    assert model_info("gpt-5[0k]").context_window == 400_000
    assert model_info("our-own[999m]").context_window == 999_000_000
    assert model_info("our-own[9999m]").context_window is None  # no window is that large


def test_unknown_names_list_the_nearest() -> None:
    assert model_info("claude-sonet-4.5").nearest[0] == "claude-sonnet-4.5"
    assert "gpt-5.6" in model_info("openai/gpt-5.7").nearest
    assert "gemini-2.5-pro" in model_info("gemini-2.5-por").nearest
    assert {model_info(name).provider for name in model_info("kimi-latest").nearest} == {"moonshot"}
    assert model_info("zzzzzz").nearest == ()
    assert len(model_info("gpt").nearest) <= 3


@pytest.mark.parametrize(
    ("name", "error", "message"),
    [
        (None, TypeError, "got NoneType"),
        (5, TypeError, "got int"),
        (b"gpt-5", TypeError, "got bytes"),
        ("", ValueError, "got ''"),
        (" \n", ValueError, r"got ' \\n'"),
    ],
)
def test_what_is_no_name(name: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=message):
        model_info(name)


@pytest.mark.parametrize(
    "name",
    [
        *("a:" * 500_000, "/" * 1_000_000, "gpt-5-" + "2024-10-" * 100_000, "x" * 1_000_000 + "[1m]"),
        "gpt-5-" + "v-10-10-2010-" * 22 + "zz",  # `v 10 10` and `2010`, or `v 10` and `10 2010`
    ],
)
def test_long_names_take_no_time(name: str) -> None:
    start = time.perf_counter()
    info = model_info(name)
    assert not info.known
    assert len(info.nearest) <= 3
    assert time.perf_counter() - start < 1


@given(st.text(max_size=80))
def test_any_text_is_answered(name: str) -> None:
    if name.strip():
        info = model_info(name)
        assert info.name == name
        assert info.known or info.context_window is None or "[" in name


@given(st.sampled_from(NAMES), st.sampled_from(["", "openrouter/", "bedrock/us.", "a/b/", "litellm_proxy/", "hf:"]))
def test_prefixes_and_case_change_nothing(name: str, prefix: str) -> None:
    plain, dressed = model_info(name), model_info(f" {prefix}{name.upper()} ")
    assert dataclasses.replace(dressed, name=name) == plain


@given(
    st.sampled_from(NAMES),
    st.sampled_from(["-latest", "-20250929", "@20250929", "-2024-08-06", ":free", "-preview", "-fp8", "-AWQ"]),
)
def test_endings_change_nothing_but_to_a_row_of_their_own(name: str, ending: str) -> None:
    plain, dated = model_info(name), model_info(name + ending)
    assert dated.known
    assert dated.provider == plain.provider


def test_frozen_hashable_and_replaced_by_users() -> None:
    info = model_info("gpt-5")
    own = dataclasses.replace(info, context_window=100_000)
    assert own.context_window == 100_000
    assert own.image_tokens(64, 64) == info.image_tokens(64, 64)
    assert len({info, own, model_info("gpt-5")}) == 2
    with pytest.raises(dataclasses.FrozenInstanceError):
        info.known = False  # type: ignore[misc]
    assert isinstance(info, ModelInfo)
    assert (type(info.frame), type(info.tools), type(info.images)) == (Frame, ToolOverhead, ImageRule)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"name": None}, "name: expected `str`, got None"),
        ({"family": 5}, "family: expected `str`, got 5"),
        ({"frame": None}, "frame: expected `Frame`, got None"),
        ({"tools": Frame()}, "tools: expected `ToolOverhead`, got Frame("),
        ({"images": {"kind": "fixed"}}, "images: expected `ImageRule`, got {"),
    ],
)
def test_parts_of_another_type(change: dict[str, Any], message: str) -> None:
    with pytest.raises(TypeError, match=f"^{re.escape(message)}"):
        dataclasses.replace(model_info("gpt-5"), **change)
    with pytest.raises(TypeError, match=r"^whole_patches: expected `bool`, got 1$"):
        ImageRule("patches", patch=1, whole_patches=1)  # type: ignore[arg-type]


@pytest.mark.parametrize("scale", [math.nan, math.inf, -1.0, 1e300])
def test_a_class_that_checks_nothing(scale: float) -> None:
    """What is derived from `ModelInfo` may leave out its checks; the counter has its own."""

    class Unchecked(ModelInfo):
        def __post_init__(self) -> None:
            pass

    class UncheckedFrame(Frame):
        def __post_init__(self) -> None:
            pass

    fields = {field.name: getattr(model_info("gpt-5"), field.name) for field in dataclasses.fields(ModelInfo)}
    for change in (
        {"scale": scale},
        {"audio_tokens_per_second": scale},
        {"pdf_page_tokens": -1},
        {"frame": UncheckedFrame(per_message=2**32)},
    ):
        with pytest.raises(ValueError, match="expected 0 to 1,000"):
            TokenCounter.for_model(Unchecked(**{**fields, **change}))
    assert TokenCounter.for_model(Unchecked(**fields)) == TokenCounter.for_model("gpt-5")


# ---------------------------------------------------------------- images


@pytest.mark.parametrize(
    ("model", "width", "height", "detail", "tokens"),
    [
        # OpenAI's examples
        ("gpt-4o", 1024, 1024, "high", 765),
        ("gpt-4o", 2048, 4096, "high", 1105),
        ("gpt-4o", 4096, 8192, "low", 85),
        ("gpt-4.1-mini", 1024, 1024, "auto", 1659),
        ("gpt-4.1-mini", 1800, 2400, "auto", 2353),
        ("o1", 512, 512, "high", 225),
        ("gpt-5", 640, 480, "auto", 350),
        ("gpt-4o-mini", 640, 480, "auto", 14167),
        # as billed: one image of 10 sizes (Hugging Face, JOHNISKING/image-token-cost)
        ("gpt-6-astra", 256, 256, "auto", 77),
        ("gpt-6-astra", 512, 512, "auto", 308),
        ("gpt-6-astra", 1280, 720, "auto", 1104),
        ("gpt-6-astra", 2560, 1440, "auto", 4320),
        ("gpt-6-astra", 4032, 3024, "auto", 14364),
        ("gpt-6-astra", 2560, 1440, "high", 2931),
        ("gpt-6-astra", 4032, 3024, "high", 2942),
        ("gpt-5.5", 4032, 3024, "auto", 11868),
        ("gpt-5.5", 4032, 3024, "original", 11868),
        ("gpt-5.4", 4032, 3024, "auto", 2942),
        ("gpt-5.4", 4032, 3024, "original", 11868),
        ("claude-haiku-4-5", 256, 256, "auto", 100),
        ("claude-haiku-4-5", 1024, 1024, "auto", 1369),
        ("claude-haiku-4-5", 1920, 1080, "auto", 1560),
        ("claude-haiku-4-5", 1080, 1920, "auto", 1560),
        ("claude-haiku-4-5", 2000, 1500, "auto", 1564),
        ("claude-opus-5-5", 1024, 1024, "auto", 1369),
        ("claude-opus-5-5", 1920, 1080, "auto", 2691),
        ("claude-opus-5-5", 2000, 1500, "auto", 3888),
        # Anthropic's: 1092 x 1092 pixels are about 1,600 tokens and not made smaller
        ("claude-sonnet-4-5", 1092, 1092, "auto", 1521),
        ("claude-opus-4-7", 2576, 1456, "auto", 4784),
        # Google's
        ("gemini-2.5-pro", 384, 384, "auto", 258),
        ("gemini-2.5-pro", 640, 480, "auto", 258),
        ("gemini-2.5-pro", 1536, 768, "auto", 516),
        ("gemini-2.0-flash", 540, 360, "auto", 1806),
        ("gemini-2.0-flash", 640, 480, "auto", 1290),
        ("gemini-3-pro-preview", 4000, 3000, "auto", 1120),
    ],
)
def test_published_image_tokens(model: str, width: int, height: int, detail: Any, tokens: int) -> None:
    assert model_info(model).image_tokens(width, height, detail) == tokens


RULES = [ImageRule(**rule) for rule in TABLE["images"].values()]
sides = st.one_of(st.integers(0, 9000), st.integers(0, 10**7))


@given(st.sampled_from(RULES), sides, sides, st.sampled_from(["auto", "low", "high", "original"]))
def test_image_tokens_are_sane(rule: ImageRule, width: int, height: int, detail: Any) -> None:
    tokens = rule.count(width, height, detail)
    assert 0 < tokens <= 5_100_000
    assert rule.count(height, width, detail) == tokens
    if rule.kind == "patches" and rule.max_patches > 0 and (detail == "high" or rule.auto == "high" == detail):
        assert tokens <= rule.max_patches * rule.multiplier + 1


@pytest.mark.parametrize("rule", RULES, ids=list(TABLE["images"]))
@pytest.mark.parametrize(("width", "height"), [(0, 0), (1, 100_000), (100_000, 1), (10**6, 10**6), (1, 1)])
def test_strange_sizes(rule: ImageRule, width: int, height: int) -> None:
    for detail in ("low", "high"):
        assert 0 < rule.count(width, height, detail) < 60_000


def test_rounding_errors_cost_no_patches() -> None:
    """Images of the shape of as many patches as there can be: 48 x 32 and 50 x 50."""
    for model, wide, high in (("gpt-4.1-mini", 48, 32), ("gpt-5.5", 50, 50)):
        assert len({model_info(model).image_tokens(wide * side, high * side, "high") for side in range(33, 999)}) == 1


def test_a_smaller_image_fits_as_well_as_it_can() -> None:
    """The search for the largest size, against trying every width."""
    rule = model_info("claude-sonnet-4-5").images
    for width, height in itertools.product((1600, 1999, 3000, 7000), (300, 1100, 2500, 6001)):
        best = 0
        for smaller in range(1, 1569):
            wide, high = (smaller, smaller * height / width) if width >= height else (smaller * width / height, smaller)
            patches = -(-wide // 28) * -(-high // 28)
            best = max(best, int(patches) if patches <= 1568 else 0)
        assert best <= rule.count(width, height) <= 1568
        assert rule.count(width, height) - best <= 57  # whole pixels against any size in between


@pytest.mark.parametrize(
    ("size", "error", "message"),
    [
        ((-1, 5), ValueError, "width: expected a number of pixels, got -1"),
        ((5, -1), ValueError, "height: expected a number of pixels, got -1"),
        ((5.0, 5), TypeError, "width: expected a whole number of pixels, got 5.0"),
        ((5, None), TypeError, "height: expected a whole number of pixels, got None"),
        ((True, 5), TypeError, "width: expected a whole number of pixels, got True"),
        (("5", 5), TypeError, "width: expected a whole number of pixels, got '5'"),
        ((5, 5, "huge"), ValueError, "detail: expected one of auto, low, high, original, got 'huge'"),
    ],
)
def test_what_is_no_size(size: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        model_info("gpt-4o").image_tokens(*size)


# ---------------------------------------------------------------- against requests whose usage the provider reported


def requests(shared: Path, provider: str) -> list[Recorded]:
    path = shared / "transcripts" / "provider-pairs" / f"{provider}.jsonl"
    if not path.is_file():
        pytest.skip("no recorded requests among the shared data")
    return list(recorded.read(path))


@pytest.mark.parametrize(
    ("provider", "with_tools", "median", "least"),
    [
        ("anthropic", False, 0.12, 60),
        ("anthropic", True, 0.06, 100),
        ("openai", False, 0.001, 400),
        ("openai", True, 0.02, 250),
        ("groq", True, 0.05, 20),
        ("mistral", True, 0.04, 5),
        ("z", True, 0.03, 10),
    ],
)
def test_recorded_requests(shared: Path, provider: str, with_tools: bool, median: float, least: int) -> None:
    """Frames and tool constants: most requests are tiny, so that a token more or less is some percent."""
    errors = [
        abs(request.error())
        for request in requests(shared, provider)
        if bool(request.body.get("tools")) == with_tools and not request.has_media
    ]
    assert len(errors) >= least
    assert statistics.median(errors) <= median


def test_recorded_requests_of_openai_are_counted_exactly(shared: Path) -> None:
    """Texts and frames: nine of ten are what the provider counted, to the token."""
    plain = [
        request for request in requests(shared, "openai") if not request.body.get("tools") and not request.has_media
    ]
    assert sum(request.estimated() == request.counted for request in plain) > 0.9 * len(plain)


def test_recorded_tools_of_openai(shared: Path) -> None:
    """Estimates fit as well as exact counts, for the constants are those of texts that are sent; few are too low."""
    for provider, least in (("openai", 250), ("azure", 10)):
        with_tools = [
            request
            for request in requests(shared, provider)
            if request.body.get("tools") and not request.has_media and model_info(request.model).encoding
        ]
        assert len(with_tools) >= least
        low = sum(request.estimated() < 0.98 * request.counted for request in with_tools)
        assert low <= 0.15 * len(with_tools)


@pytest.mark.parametrize(("provider", "least"), [("openai", 20), ("anthropic", 10), ("mistral", 5), ("groq", 5)])
def test_recorded_images(shared: Path, provider: str, least: int) -> None:
    with_images = [request for request in requests(shared, provider) if request.images]
    assert len(with_images) >= least
    for request in with_images:
        assert abs(request.estimated() - request.counted) <= 0.1 * request.counted + 1, (request.model, request.images)


# -------------------------------------------------------------------------------------------------- exact counts


# Names of the table that tiktoken 0.14.0 does not know: their encoding is that of the models before them.
ASSUMED = re.compile(r"gpt-6.*|gpt-audio.*|codex-mini|chat-latest|gpt-chat-latest")
LINES = "The tests pass now; I have changed two files.\n" * 20
TOOLS = [{"type": "function", "function": {"name": "read_file", "description": "Reads a file.", "parameters": {}}}]


def test_encodings_are_those_of_tiktoken() -> None:
    assumed = set()
    for name in NAMES:
        info = model_info(name)
        if info.provider != "openai":
            assert info.encoding is None, name
            continue
        try:
            known = tiktoken.model.encoding_name_for_model(f"{name}-" if name in ("gpt-oss", "chatgpt-4o") else name)
        except KeyError:
            known = "o200k_base"
            assumed.add(name)
        assert info.encoding == known, name
    assert assumed == set(filter(ASSUMED.fullmatch, NAMES))


@pytest.mark.parametrize(
    ("name", "encoding"),
    [
        ("gpt-3.5-turbo", "cl100k_base"),
        ("azure/gpt-35-turbo", "cl100k_base"),
        ("gpt-4-turbo-2024-04-09", "cl100k_base"),
        ("gpt-4o", "o200k_base"),
        ("ft:gpt-4.1-nano-2025-04-14:company::AbCdEf", "o200k_base"),
        ("o3-mini", "o200k_base"),
        ("openrouter/openai/gpt-5-mini", "o200k_base"),
        ("gpt-6-astra", "o200k_base"),
        ("groq/openai/gpt-oss-120b", "o200k_harmony"),
        ("gpt-5[200k]", "o200k_base"),
    ],
)
def test_models_of_openai_are_counted_exactly(name: str, encoding: Any) -> None:
    """Texts as tiktoken counts them; frames, tools and results cost what they cost beside estimates."""
    info = model_info(name)
    assert info.encoding == encoding
    counter, exact = TokenCounter.for_model(name), TokenCounter.exact(encoding, message_overhead=0)
    message = {"role": "user", "content": LINES}
    for text in (LINES, "", "a" * 3_000, "Größe, 大小\n", "\ud800"):
        assert counter.text(text) == exact.text(text)
    assert counter.message(message) == exact.message(message) + info.frame.per_message
    assert counter.messages([message]) == counter.message(message) + info.frame.per_request
    declared = exact.text(declaration(TOOLS[0], "tool") or "")
    schemas = math.floor(exact.tools(TOOLS) * info.tools.schema_scale + 0.5)
    texts = declared if info.tools.notation == "typescript" else schemas
    assert counter.tools(TOOLS) == texts + info.tools.per_request + info.tools.per_tool
    assert counter.count_up_to(LINES, 9) == 10
    assert not counter.fits(LINES, 9)
    for safety in (0.5, 0.95, 0.99):  # there is nothing to be safe from
        assert TokenCounter.for_model(name, safety=safety) == counter


def test_exact_is_optional() -> None:
    exact, fast = TokenCounter.for_model("gpt-5"), TokenCounter.for_model("gpt-5", exact=False)
    assert exact != fast
    assert fast.text(LINES) == TokenCounter.estimator("o200k").text(LINES) != exact.text(LINES)
    safe = TokenCounter.for_model("gpt-5", exact=False, safety=0.99)
    assert repr(safe) == "TokenCounter.for_model('gpt-5', exact=False, safety=0.99)"
    assert pickle.loads(pickle.dumps(safe)) == safe != fast
    assert hash(pickle.loads(pickle.dumps(safe))) == hash(safe)
    assert repr(TokenCounter.for_model("gpt-5", exact=True)) == "TokenCounter.for_model('gpt-5')"
    assert TokenCounter.for_model("claude-opus-4-7", exact=False) == TokenCounter.for_model("claude-opus-4-7")
    with pytest.raises(TypeError, match="exact"):
        TokenCounter.for_model("gpt-5", exact="no")  # type: ignore[arg-type]
    assert ctxfast.count_tokens(LINES, model="gpt-5") == exact.text(LINES)


def test_what_is_estimated() -> None:
    """A name that is not in the table, a model with a scale, one whose encoding is taken away; others may get one."""
    info = model_info("gpt-5")
    estimate = TokenCounter.estimator("o200k")
    for other in (model_info("gpt-9.9"), dataclasses.replace(info, encoding=None)):
        assert other.encoding is None
        assert TokenCounter.for_model(other).text(LINES) == estimate.text(LINES)
        assert TokenCounter.for_model(other).messages([{"role": "user", "content": LINES}]) > 1.03 * estimate.text(
            LINES
        )
    scaled = TokenCounter.for_model(dataclasses.replace(info, scale=1.5)).text(LINES)
    assert scaled == pytest.approx(1.5 * estimate.text(LINES), abs=1)
    own = dataclasses.replace(model_info("grok-4"), encoding="cl100k_base")
    assert TokenCounter.for_model(own).text("a" * 3_000) == TokenCounter.exact("cl100k_base").text("a" * 3_000)
    with pytest.raises(TypeError, match=r"^encoding: expected `str`, got 5$"):
        dataclasses.replace(info, encoding=5)  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"^encoding: expected one of cl100k_base, .*, got 'p50k_base'$"):
        TokenCounter.for_model(dataclasses.replace(info, encoding="p50k_base"))  # type: ignore[arg-type]


def test_a_vocabulary_is_built_when_it_first_counts() -> None:
    """Who makes a counter and never counts does not wait."""
    code = """
import time
from ctxfast import TokenCounter
TokenCounter.for_model("gpt-5", exact=False).text("a text")
start = time.process_time()
counter = TokenCounter.for_model("gpt-5")
made = time.process_time()
counter.text("a text")
print(made - start, time.process_time() - made)
"""
    run = subprocess.run([sys.executable, "-c", code], check=True, timeout=60, capture_output=True, text=True)
    made, counted = map(float, run.stdout.split())
    assert 5 * made < counted


# -------------------------------------------------------------------------------------------------- unknown names


def test_an_unknown_name_is_not_counted_in_silence() -> None:
    """A misspelt one would be 40 % too low, or a fifth too high."""
    with pytest.warns(UnknownModelWarning, match="'cluade-opus-4-7' is not in the table.*nearest: claude-opus-4"):
        counter = TokenCounter.for_model("cluade-opus-4-7")
    with pytest.warns(UnknownModelWarning, match="taken for deepseek_v3 times 1.2") as caught:
        count = ctxfast.count_tokens(LINES, model="someone/new-model-9")
    assert count == pytest.approx(1.2 * TokenCounter.estimator("deepseek_v3").text(LINES), abs=1)
    assert caught[0].filename == __file__
    with pytest.warns(UnknownModelWarning):
        assert pickle.loads(pickle.dumps(counter)) == counter


def test_a_model_info_is_no_guess() -> None:
    counter = TokenCounter.for_model(model_info("someone/new-model-9"))  # a warning would be an error here
    assert counter.text(LINES) > TokenCounter.estimator("deepseek_v3").text(LINES)
