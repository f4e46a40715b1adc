"""Recorded requests whose tokens the provider has counted, and what the counter of the model says of them."""

from __future__ import annotations

import base64
import json
import re
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from ctxfast import TokenCounter

# What is counted otherwise, or is not in the data: answers of a fixed form, thinking, files, sound, images elsewhere.
OTHERWISE = re.compile(r'json_schema|output_format|"thinking"|"signature"')
ELSEWHERE = re.compile(r'"(?:file_id|url": "http|input_audio|file_data)|pdf')
REMOVED_IMAGE = re.compile(r"<base64 removed[^>]*dims=\((\d+), (\d+)\)[^>]*>")
MEDIA = ('"image', '"document"')


@dataclass(frozen=True)
class Recorded:
    """A request to chat completions or to Anthropic's messages."""

    model: str
    body: dict[str, Any]
    counted: int
    """Tokens of the prompt by the provider."""
    images: tuple[tuple[int, int], ...]
    """Sizes of its images in pixels."""
    has_media: bool

    def estimated(self) -> int:
        """By the counter of its model, without a margin; images that were removed are given back their size."""
        text = REMOVED_IMAGE.sub(lambda found: head_of_gif(int(found[1]), int(found[2])), json.dumps(self.body))
        return TokenCounter.for_model(self.model, safety=0.5).request(json.loads(text))

    def error(self) -> float:
        """Of the estimate, as a share of what was counted."""
        return self.estimated() / self.counted - 1


def read(file: Path) -> Iterator[Recorded]:
    """The requests of a file of JSON lines that can be compared."""
    for line in file.read_text(encoding="utf-8").splitlines():
        pair = json.loads(line)
        body, counted = pair["request"], sum(pair["usage"].get(k) or 0 for k in ("input", "cache_read", "cache_write"))
        if pair["endpoint"] not in ("chat", "messages") or not pair["model"] or OTHERWISE.search(line) or not counted:
            continue
        if body.get("tool_choice", "auto") not in ("auto", {"type": "auto"}):
            continue
        if any(tool.get("type", "function") not in ("function", "custom") for tool in body.get("tools") or []):
            continue
        text = json.dumps(body)
        has_media = any(mark in text for mark in MEDIA) or ELSEWHERE.search(text) is not None
        images = () if ELSEWHERE.search(text) else tuple((int(w), int(h)) for w, h in REMOVED_IMAGE.findall(text))
        yield Recorded(pair["model"], body, counted, images, has_media)


def head_of_gif(width: int, height: int) -> str:
    """The first bytes of an image of that size, as base64."""
    return base64.b64encode(b"GIF89a" + struct.pack("<2H", width, height) + b"\0\0\0;").decode()
