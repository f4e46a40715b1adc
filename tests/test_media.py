"""Media count by what they show: the core against its twin, wherever the data lie."""

from __future__ import annotations

import base64
import struct
import zlib
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxfast import TokenCounter, model_info
from ctxfast.models import ImageRule
from ctxfast.reference import for_model
from ctxfast.reference.media import Image, image_tokens, look

# 1 token a pixel in width: a count says what was read.
WIDTH = replace(
    model_info("gpt-4o"),
    images=ImageRule("patches", patch=1, max_patches=0),
    pdf_page_tokens=7,
    audio_tokens_per_second=3,
)


def png(width: int, height: int = 1) -> bytes:
    """A whole image."""

    def chunk(name: bytes, data: bytes) -> bytes:
        return struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))

    rows = zlib.compress(b"\0" * (width * 3 + 1) * height)
    header = struct.pack(">2I5B", width, height, 8, 2, 0, 0, 0)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")


def gif(width: int, height: int = 1) -> bytes:
    return b"GIF89a" + struct.pack("<2H", width, height) + b"\0\0\0;"


def jpeg(width: int, height: int = 1, thumbnail: int = 0) -> bytes:
    """The segments before the pixels; in front of the size there may be a thumbnail of so many bytes."""
    segments = b"\xff\xe0\0\x10JFIF\0\1\1\0\0\1\0\1\0\0"
    for _ in range(0, thumbnail, 60_000):
        segments += b"\xff\xe1" + struct.pack(">H", 60_002) + b"\xff" * 60_000
    return (
        b"\xff\xd8" + segments + b"\xff\xc0\0\x11\x08" + struct.pack(">2H", height, width) + b"\3\1\x11\0" * 3 + b"\0\0"
    )


def webp(width: int, height: int = 1, form: str = "VP8X") -> bytes:
    size = struct.pack("<I", width - 1)[:3] + struct.pack("<I", height - 1)[:3]
    body = {
        "VP8X": b"\0\0\0\0" + size,
        "VP8L": b"\x2f" + struct.pack("<I", width - 1 | (height - 1) << 14),
        "VP8 ": b"\0\0\0\x9d\x01\x2a" + struct.pack("<2H", width, height),
    }[form]
    data = form.encode() + struct.pack("<I", len(body)) + body + b"\0" * 8
    return b"RIFF" + struct.pack("<I", len(data) + 4) + b"WEBP" + data


IMAGES = {
    "png": png(640, 480),
    "gif": gif(640, 480),
    "jpeg": jpeg(640, 480),
    "jpeg with a thumbnail": jpeg(640, 480, thumbnail=200_000),
    "webp": webp(640, 480),
    "webp lossless": webp(640, 480, "VP8L"),
    "webp lossy": webp(640, 480, "VP8 "),
}


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def url(data: bytes, kind: str = "image/png") -> str:
    return f"data:{kind};base64,{b64(data)}"


def tokens(part: Any, role: str = "user") -> int:
    """Of a part by itself; the core and its twin agree."""
    fast, slow = TokenCounter.for_model(WIDTH), for_model(WIDTH)
    message = {"role": role, "content": [part]}
    assert fast.content([part]) == slow.content([part])
    assert fast.message(message) == slow.message(message) == slow.content([part]) + WIDTH.frame.per_message
    return fast.content([part])


@pytest.mark.parametrize("name", IMAGES)
def test_headers(name: str) -> None:
    data = IMAGES[name]
    assert look("other", data) == look("image", b64(data)) == look("image", url(data)) == Image(640, 480)
    assert tokens({"type": "image_url", "image_url": {"url": url(data)}}) == 640 * 480


IMAGE = png(300, 20)
WAVE = (
    b"RIFF\0\0\0\0WAVEfmt \x10\0\0\0\1\0\1\0" + struct.pack("<2I", 24_000, 48_000) + b"\2\0\x10\0data" + b"\0" * 95_956
)
PDF = b"%PDF-1.4\n1 0 obj << /Type /Pages /Count 2 >>\n2 0 obj << /Type /Page >>\n3 0 obj <</Type/Page>>"
PLACES: dict[str, tuple[Any, int]] = {
    "chat completions": ({"type": "image_url", "image_url": {"url": url(IMAGE), "detail": "high"}}, 6_000),
    "chat completions, a plain URL": ({"type": "image_url", "image_url": url(IMAGE)}, 6_000),
    "responses": ({"type": "input_image", "image_url": url(IMAGE), "detail": "auto"}, 6_000),
    "messages": ({"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": b64(IMAGE)}}, 6_000),
    "mcp": ({"type": "image", "data": b64(IMAGE), "mimeType": "image/png"}, 6_000),
    "vercel": ({"type": "image", "image": bytearray(IMAGE)}, 6_000),
    "langchain": ({"type": "image", "base64": b64(IMAGE), "mime_type": "image/png"}, 6_000),
    "a file that is an image": ({"type": "file", "file": {"file_data": url(IMAGE), "filename": "a"}}, 6_000),
    "a PDF": ({"type": "file", "file": {"file_data": url(PDF, "application/pdf"), "filename": "a.pdf"}}, 14),
    "a PDF in messages": ({"type": "document", "source": {"type": "base64", "data": b64(PDF)}}, 14),
    "a PDF somewhere else": ({"type": "input_file", "file_id": "file-123"}, 7),
    "a text file": ({"type": "input_file", "file_data": url(b"name,size\n" * 10, "text/csv")}, 26),
    "sound": ({"type": "input_audio", "input_audio": {"data": b64(WAVE), "format": "wav"}}, 6),
    "sound, compressed": ({"type": "input_audio", "input_audio": {"data": b64(b"ID3" + b"\0" * 29_997)}}, 6),
    "sound somewhere else": ({"type": "audio", "audio": {"id": "audio_abc"}}, 180),
    "an image somewhere else": ({"type": "image_url", "image_url": {"url": "https://example.org/a.png"}}, 1920 * 1080),
    "an image that is a file": ({"type": "image", "source": {"type": "file", "file_id": "file_1"}}, 1920 * 1080),
    "a broken image": ({"type": "image_url", "image_url": {"url": "data:image/png;base64,iVBORw0K"}}, 1920 * 1080),
    "a video": ({"type": "video_url", "video_url": {"url": "https://example.org/a.mp4"}}, 1920 * 1080),
    "not even a part of its kind": ({"type": "image", "source": [7]}, 1920 * 1080),
}


@pytest.mark.parametrize("name", PLACES)
def test_places(name: str) -> None:
    part, expected = PLACES[name]
    assert tokens(part) == expected


def test_inside_a_tool_result() -> None:
    part, expected = PLACES["messages"]
    frame = WIDTH.frame.per_result
    assert tokens({"type": "tool_result", "tool_use_id": "t", "content": [part]}) == expected + frame


@pytest.mark.parametrize(
    ("data", "size"),
    [
        (gif(640, 480)[:11], None),
        (webp(640, 480)[:20], None),
        (webp(640, 480, "VP8L")[:24], None),
        (b"\xff\xd8\xff\xd9\0\2" + jpeg(640, 480)[2:], None),
        (b"\xff\xd8\xff\xd8\0\2" + jpeg(9, 9)[2:], None),
        (b"\xff\xd8\xff\xd8\0\2\xff\xd9\0\2" + jpeg(640, 480)[2:], (640, 480)),
    ],
)
def test_broken_headers(data: bytes, size: tuple[int, int] | None) -> None:
    width, height = size or (1920, 1080)
    assert tokens({"type": "image", "data": data}) == width * height


def test_media_in_places_of_text() -> None:
    """They are no part of what is multiplied or left out with the texts around them."""
    info = replace(WIDTH, tools=replace(WIDTH.tools, schema_scale=0.5))
    block: Any = {"type": "new", "picture": url(IMAGE)}
    message = {"role": "system", "content": [block], "system_parts": [{"type": "text", "text": "word " * 50}]}
    counter, twin = TokenCounter.for_model(info), for_model(info)
    assert counter.message(message) == twin.message(message) > 6_050
    assert counter.tools([block]) == twin.tools([block]) > 6_000


def test_in_a_block_that_nobody_knows() -> None:
    """Its JSON is text, but for the data: Gemini's parts, Bedrock's."""
    for block in (
        {"type": "new", "inline_data": {"mime_type": "image/png", "data": b64(IMAGE)}},
        {"image": {"format": "png", "source": {"bytes": IMAGE}}},
        {"type": "new", "deep": [{"picture": url(IMAGE)}]},
    ):
        assert 6_000 < tokens(block) < 6_040


def test_base64_that_is_said_is_text() -> None:
    assert tokens({"type": "text", "text": url(IMAGE)}) == for_model(WIDTH).text(url(IMAGE))
    assert tokens(b64(IMAGE * 20)) > 500


def test_detail() -> None:
    """A low one has the same price whatever the size."""
    counter = TokenCounter.for_model("gpt-4o")
    for width in (1, 500, 4_000):
        part: Any = {"type": "image_url", "image_url": {"url": url(gif(width, width)), "detail": "low"}}
        assert counter.content([part]) == for_model("gpt-4o").content([part]) == 85
    part["image_url"]["detail"] = "high"
    assert counter.content([part]) == model_info("gpt-4o").image_tokens(4_000, 4_000) == 765


def test_size_of_base64_does_not_matter() -> None:
    counter = TokenCounter.for_model("claude-sonnet-4-5")
    small, large = ({"type": "image_url", "image_url": url(png(900, 600) + b"\0" * more)} for more in (0, 2_000_000))
    assert counter.content([small]) == counter.content([large]) == 33 * 22


def test_plain_estimators_do_not_look() -> None:
    for counter in (TokenCounter.estimator("o200k"), TokenCounter.from_callable(len)):
        assert {counter.content([part]) for part, _ in PLACES.values()} == {256}


sizes = st.one_of(st.integers(1, 70_000), st.integers(1, 5_000))
models = st.sampled_from(
    [
        *(
            "gpt-4o",
            "gpt-4o-mini",
            "gpt-4.1-mini",
            "gpt-5",
            "gpt-5.5",
            "claude-sonnet-4-5",
            "claude-opus-4-7",
            "someone",
        ),
        *("gemini-2.0-flash", "gemini-2.5-pro", "gemini-3-pro", "pixtral-large", "qwen3-vl-plus", "grok-4"),
    ]
)
details = st.sampled_from(["auto", "low", "high", "original"])


@given(models, sizes, sizes, details)
def test_core_and_twin_agree_on_sizes(model: str, width: int, height: int, detail: Any) -> None:
    info = model_info(model)
    assert info.image_tokens(width, height, detail) == image_tokens(info.images, width, height, detail)


junk = st.one_of(
    st.binary(max_size=80),
    st.builds(
        bytes.__add__, st.sampled_from([*[d[:40] for d in IMAGES.values()], PDF, WAVE[:60]]), st.binary(max_size=9)
    ),
)


@given(junk, st.sampled_from(["image", "input_audio", "file", "video"]), st.booleans())
def test_core_and_twin_agree_on_whatever_it_is(data: bytes, kind: str, written: bool) -> None:
    tokens({"type": kind, "data": b64(data) if written else data})
    tokens({"type": kind, "data": data.decode("latin-1")})


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"kind": "guess"}, "kind: expected fixed, tiles, patches or crops, got 'guess'"),
        ({"kind": "patches"}, "patch: expected 1 or more for the kind 'patches', got 0"),
        ({"tokens": -1}, "tokens: expected 0 to 1,000,000, got -1"),
        ({"multiplier": float("nan")}, "multiplier: expected 0 to 1,000, got nan"),
        ({"auto": "huge"}, "auto: expected one of auto, low, high, original, got 'huge'"),
    ],
)
def test_rules_without_sense(change: dict[str, Any], message: str) -> None:
    with pytest.raises(ValueError, match=f"^{message}$"):
        ImageRule(**{"kind": "fixed", **change})
