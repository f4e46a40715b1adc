"""Writes the tables of the estimator: fitted coefficients (JSON, one file a family) become `rust/ctxfast/tables/*.z`.

    python tools/estimator/pack.py DIRECTORY

A table is one zlib stream: a cost for each slot (u8, in 1/64 token), the register of each ASCII slot (i8, in 1/500),
and the two coefficients of the register's correction (f64, little-endian). `rust/ctxfast/src/estimate.rs` says what
they mean.
"""

from __future__ import annotations

import base64
import json
import struct
import sys
import zlib
from pathlib import Path

TABLES = Path(__file__).parent.parent.parent / "rust" / "ctxfast" / "tables"
COSTS, REGISTERS = 526_336, 147_456  # slots; as in `estimate.rs`
FORMAT = {"format": 1, "unit": 64, "register_unit": 500, "register_clamp": 0.25}


def pack(file: Path) -> bytes:
    """The table of one family. Raises `ValueError` for coefficients of another format."""
    fitted = json.loads(file.read_bytes())
    found = {key: fitted[key] for key in FORMAT}
    if found != FORMAT:
        raise ValueError(f"{file}: expected {FORMAT}, got {found}")
    main = fitted["kinds"]["main"]
    costs, registers = (zlib.decompress(base64.b64decode(main[key])) for key in ("cost", "register"))
    if (len(costs), len(registers)) != (COSTS, REGISTERS):
        raise ValueError(f"{file}: expected {COSTS} and {REGISTERS} slots, got {len(costs)} and {len(registers)}")
    return zlib.compress(costs + registers + struct.pack("<2d", main["a"], main["b"]), 9)


if __name__ == "__main__":
    for file in sorted(Path(sys.argv[1]).glob("*.json")):
        if "kinds" in json.loads(file.read_bytes()):
            table = TABLES / f"{file.stem}.z"
            table.write_bytes(pack(file))
            sys.stdout.write(f"{table.name}: {table.stat().st_size:,} bytes\n")
