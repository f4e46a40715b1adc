"""The file format of tables, and the way from the study's coefficients (JSON, one file a family) to it.

    python tools/estimator/pack.py DIRECTORY OUT

A table is one zlib stream: a cost for each slot (u8, in 1/64 token), the register of each ASCII slot (i8, in 1/500),
and the two coefficients of the register's correction (f64, little-endian). `rust/ctxfast/src/estimate.rs` says what
they mean and names the file of each family: `FAMILY-VERSION.z`.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from pathlib import Path

from ctxfast.reference.estimating import ASCII, COSTS

TABLES = Path(__file__).parent.parent.parent / "rust" / "ctxfast" / "tables"
STUDY_VERSION = 1
FORMAT = {"format": 1, "unit": 64, "register_unit": 500, "register_clamp": 0.25}


def pack(costs: bytes, registers: bytes, offset: float, slope: float) -> bytes:
    """A table as it is used, not yet compressed. Raises `ValueError` for another number of slots."""
    if (len(costs), len(registers)) != (COSTS, ASCII):
        raise ValueError(f"expected {COSTS} and {ASCII} slots, got {len(costs)} and {len(registers)}")
    return costs + registers + struct.pack("<2d", offset, slope)


def write(table: bytes, file: Path) -> None:
    file.write_bytes(zlib.compress(table, 9))
    sys.stdout.write(f"{file.name}: {file.stat().st_size:,} bytes\n")


def study(file: Path) -> bytes:
    """The table of a family whose coefficients are in this file. Raises `ValueError` for another format."""
    fitted = json.loads(file.read_bytes())
    found = {key: fitted[key] for key in FORMAT}
    if found != FORMAT:
        raise ValueError(f"{file}: expected {FORMAT}, got {found}")
    main = fitted["kinds"]["main"]
    costs, registers = (zlib.decompress(base64.b64decode(main[key])) for key in ("cost", "register"))
    return pack(costs, registers, main["a"], main["b"])


if __name__ == "__main__":
    for source in sorted(Path(sys.argv[1]).glob("*.json")):
        if "kinds" in json.loads(source.read_bytes()):
            write(study(source), Path(sys.argv[2]) / f"{source.stem}-{STUDY_VERSION}.z")
