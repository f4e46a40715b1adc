"""What a media part is, from the first bytes of its data: an image of so many pixels, a PDF of so many pages, sound."""

from __future__ import annotations

import base64
import math
import re
import struct
from typing import TYPE_CHECKING, NamedTuple

from ctxfast.errors import MessageTypeError
from ctxfast.reference.reading import read_fields

if TYPE_CHECKING:
    from ctxfast.models import ImageRule, ModelInfo

AUDIO, FILE = "audio", "file"  # what a part calls itself; also "image" and "other", of which nothing follows

# Fields that hold the data of a part or something that holds them, in the order in which they are looked for.
DATA_KEYS = (
    *("image_url", "source", "input_audio", "audio", "file", "video_url", "inline_data", "inlineData"),
    *("image", "data", "file_data", "bytes", "base64", "blob", "url"),
)
MAX_DEPTH = 3
MOST = 64 << 20  # bytes that are looked at
SCREENSHOT = (1920, 1080)  # pixels of an image whose size is not known
BYTES_OF_PAGE = 50_000  # of a PDF whose pages cannot be seen
BYTES_OF_SECOND = 16_000  # of compressed sound, 128 kbit/s
BYTES_OF_TOKEN = 4  # of a text file


class Pages(NamedTuple):
    """A PDF; how many it has."""

    number: int


class Text(NamedTuple):
    """A file of text; its length in bytes."""

    length: int


class Sound(NamedTuple):
    """Something to hear."""

    seconds: float


class Image(NamedTuple):
    """Something to see; its size in pixels."""

    width: int
    height: int


def tokens(hint: str, part: object, info: ModelInfo) -> int:
    """What a part costs a model."""
    data, detail = find_data(part, MAX_DEPTH, "auto")
    media = look(hint, data)
    if isinstance(media, Pages):
        return media.number * info.pdf_page_tokens
    if isinstance(media, Text):
        return -(-media.length // BYTES_OF_TOKEN)
    if isinstance(media, Sound):
        return math.ceil(media.seconds * info.audio_tokens_per_second)
    width, height = media or SCREENSHOT
    return image_tokens(info.images, width, height, detail)


def find_data(part: object, depth: int, detail: str) -> tuple[str | bytes, str]:
    """The data of a part, and how closely the model shall look at it; nothing where it cannot be read."""
    if isinstance(part, (str, bytes, bytearray)):
        return (part if isinstance(part, str) else bytes(part)), detail
    try:
        fields = read_fields(part, "") if depth else {}
    except MessageTypeError:
        return "", detail
    if isinstance(fields.get("detail"), str):
        detail = fields["detail"]
    found = [fields[key] for key in DATA_KEYS if fields.get(key) is not None]
    return find_data(found[0], depth - 1, detail) if found else ("", detail)


def look(hint: str, data: str | bytes) -> Pages | Text | Sound | Image | None:
    """Looks at the data: what they say beats what the part calls itself. `None`: an image of which no more is known."""
    if isinstance(data, str):
        encoded = base64_of(data)
        length, start = len(encoded) // 4 * 3, decode(encoded)
    else:
        length, start = len(data), data[:MOST]
    if start[:4] in (b"\x89PNG", b"GIF8") or start[:3] == b"\xff\xd8\xff" or is_riff(start, b"WEBP"):
        return pixels(start)
    if start[:4] == b"%PDF":
        pages = len(re.findall(rb"/Page(?![A-Za-z])", start))
        return Pages(pages or max(1, length // BYTES_OF_PAGE))
    if is_riff(start, b"WAVE"):
        rate = int.from_bytes(start[28:32], "little") if len(start) >= 32 else 0
        return Sound(length / (rate or BYTES_OF_SECOND))
    if start[:3] == b"ID3" or start[:4] in (b"OggS", b"fLaC") or (hint == AUDIO and length):
        return Sound(length / BYTES_OF_SECOND)
    if hint == FILE:
        is_text = length and b"\0" not in start[: 48 << 10] and is_utf8(start[: 48 << 10])
        return Text(length) if is_text else Pages(max(1, length // BYTES_OF_PAGE))
    return Sound(60.0) if hint == AUDIO else None


def is_riff(start: bytes, form: bytes) -> bool:
    """WebP and WAV are RIFF files."""
    return start[:4] == b"RIFF" and start[8:12] == form


def base64_of(text: str) -> str:
    """What is base64 in a data URL, or in something that may be a name (a URL, an id)."""
    if text and max(text) > "\xff":
        return ""
    if text.startswith("data:"):
        _, mark, encoded = text[:256].partition(";base64,")
        return encoded + text[256:] if mark else ""
    return "" if ":" in text[:256] or "." in text[:256] else text


def decode(text: str) -> bytes:
    """Up to what is no base64: either alphabet, with or without padding, in lines or not."""
    digits = re.match(r"[A-Za-z0-9+/]*", re.sub(r"[ \t\n\r\f]", "", text).translate({ord("-"): "+", ord("_"): "/"}))
    used = digits.group() if digits else ""
    used = used[: len(used) - (len(used) % 4 == 1)]
    return base64.b64decode(used + "=" * (-len(used) % 4))[:MOST]


def is_utf8(data: bytes) -> bool:
    """Whether it is UTF-8, but for a character that is cut at the end."""
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.reason == "unexpected end of data"
    return True


def pixels(data: bytes) -> Image | None:
    """Width and height of an image, where its header says them."""
    if len(data) < 12:
        return None
    try:
        if data[:4] == b"\x89PNG":
            width, height = struct.unpack(">2I", data[16:24])
        elif data[:4] == b"GIF8":
            width, height = struct.unpack("<2H", data[6:10])
        elif data[:4] == b"RIFF":
            return webp_pixels(data)
        else:
            return jpeg_pixels(data)
    except (struct.error, IndexError):
        return None
    return Image(width, height)


def webp_pixels(data: bytes) -> Image | None:
    """The three forms of WebP: extended, lossless, lossy."""
    if data[15:16] == b"X" and len(data) >= 30:
        return Image(int.from_bytes(data[24:27], "little") + 1, int.from_bytes(data[27:30], "little") + 1)
    if data[15:16] == b"L" and len(data) >= 25:
        bits = int.from_bytes(data[21:25], "little")
        return Image((bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1)
    if data[15:16] == b" ":
        width, height = struct.unpack("<2H", data[26:30])
        return Image(width, height)
    return None


def jpeg_pixels(data: bytes) -> Image | None:
    """From the first segment that starts a frame, of no image inside."""
    place, depth = 2, 0
    while data[place] == 0xFF and depth >= 0:
        marker = data[place + 1]
        depth += (marker == 0xD8) - (marker == 0xD9)
        if 0xC0 <= marker <= 0xCF and marker not in (0xC4, 0xC8, 0xCC) and depth == 0:
            height, width = struct.unpack(">2H", data[place + 5 : place + 9])
            return Image(width, height)
        place += 2 + int.from_bytes(data[place + 2 : place + 4], "big")
    return None


def image_tokens(rule: ImageRule, width: float, height: float, detail: str) -> int:
    """Tokens of an image of so many pixels."""
    width, height = (min(max(side, 1), 65_535) for side in (width, height))
    if rule.kind == "fixed":
        return rule.tokens
    if rule.kind == "crops":
        return crop_tokens(rule, width, height)
    if rule.kind == "patches":
        return patch_tokens(rule, width, height, rule.auto if detail not in ("low", "high", "original") else detail)
    if detail == "low":
        return rule.base
    width, height = fit(width, height, rule.max_side)
    if rule.short_side and min(width, height) > rule.short_side:
        scale = rule.short_side / min(width, height)
        width, height = width * scale, height * scale
    return rule.base + rule.per_tile * squares(width, height, rule.tile)


def patch_tokens(rule: ImageRule, width: float, height: float, detail: str) -> int:
    """A token for each patch, times a factor; the image is made smaller until there are not too many."""
    width, height = fit(width, height, rule.max_side)
    most = rule.max_patches
    if detail == "original" and rule.original_patches:
        most = rule.original_patches
    patches = squares(width, height, rule.patch)
    if 0 < most < patches:
        shrink = shrunk_to_whole if rule.whole_patches else shrunk
        patches = shrink(width / rule.patch, height / rule.patch, most)
    return math.ceil(patches * rule.multiplier - 1e-9)


def crop_tokens(rule: ImageRule, width: float, height: float) -> int:
    """One base for a small image, else one for each tile."""
    if max(width, height) <= rule.small_side:
        return rule.base
    width, height = fit(width, height, rule.max_side)
    if rule.tile:
        return rule.base * squares(width, height, rule.tile)
    tile = min(max(int(min(width, height) / 1.5), 256), 768)
    return rule.base * (squares(width, height, tile) + 1)


def fit(width: float, height: float, most: int) -> tuple[float, float]:
    """A size, made smaller until the long side is at most `most` (0: as it is)."""
    scale = most / max(width, height) if most else 1.0
    return (width * scale, height * scale) if scale < 1 else (width, height)


def squares(width: float, height: float, side: float) -> int:
    """Squares that cover a size; 1e-9 for rounding errors."""
    return max(math.ceil(width / side - 1e-9), 1) * max(math.ceil(height / side - 1e-9), 1)


def shrunk(wide: float, high: float, most: int) -> int:
    """Patches of the largest image of this shape that has at most `most`; sides in patches."""
    low, up = 0.0, 1.0
    for _ in range(50):
        middle = (low + up) / 2
        if squares(wide * middle, high * middle, 1) <= most:
            low = middle
        else:
            up = middle
    return min(squares(wide * low, high * low, 1), most)


def shrunk_to_whole(wide: float, high: float, most: int) -> int:
    """Patches of an image that is scaled to an area of `most` patches and then until one side is whole patches."""
    scale = math.sqrt(most / (wide * high))
    wide, high = wide * scale, high * scale
    scale = min(max(math.floor(side + 1e-9), 1) / side for side in (wide, high))
    return min(squares(wide * scale, high * scale, 1), most)
