"""Makes the accuracy set: texts with their true counts, for `tests/test_accuracy.py` and `docs/accuracy.md`.

    .truth/bin/python tools/estimator/accuracy_set.py

`tests/data/accuracy/written.txt` is written by hand for this project and only read here. `generated.txt` is made from
the seed below: what machines write (logs, records, listings, encodings). `counts.json` has the true count of each text
in every family, and says with what they were made; those of `REPETITIONS` beside them. The texts were not chosen by their errors: the set was written
first and measured after; a text that the estimator gets wrong stays.
"""

# Lines of templates are as long as what they make; lists of words are easier to read in one string.
# ruff: noqa: E501, SIM905

from __future__ import annotations

import base64
import json
import random
import re
import sys
import textwrap
from collections.abc import Callable
from datetime import datetime, timedelta, timezone
from pathlib import Path

import truth

SEED = 20_260_501
FOLDER = Path(__file__).parent.parent.parent / "tests" / "data" / "accuracy"

WORDS = """
account agent amber anchor archive audit badge banner batch beacon billing border branch bridge bucket buffer
bundle cache canvas capture cargo carrier catalog cedar channel chart checkout cluster coast column comet
config contact copper crane credit cursor customer daemon dataset delta deploy device digest dispatch domain
draft ember engine entry escrow event export falcon feature feed fiber field filter fleet folder forest format
gateway glacier granite grid group handler harbor header hotel image import index ingest insight inventory
invoice island item journal kernel ladder lantern latency layer ledger letter library limit linen loader local
locker login mango manifest maple margin market matrix member memory message metric migration mirror module
monitor morning motion nebula network notice number object offer office orbit order origin output owner packet
panel parcel parser partner patch payload payment pebble pepper person picture pilot pipeline planner player
plugin policy portal price printer process product profile project prompt proxy quarry query queue quota radar
range reader record refund region relay release report request reserve resource result retry review river
rocket router sample schema scope search secret segment sensor server session shipment signal silver snapshot
socket source spring stage station status stock storage stream summary supplier support switch sync table
target tenant theme thread ticket token topic trace transfer tunnel update upload user valley vault vendor
version village violet volume walnut warehouse webhook weekly widget willow window winter worker yellow zephyr
""".split()
PEOPLE = (
    "Ana Sofia Keller Novak Okafor Priya Tanaka Lindqvist Moreau Petrov Haddad Nguyen Silva Murphy Kowalski Larsen"
    " Adeyemi Castillo Fischer Yamamoto Rossi Cohen Dubois Ivanova Park Olsen Reyes Schmidt Walker Zhang"
).split()
CITIES = ["Lisbon", "Osaka", "Tromsø", "São Paulo", "Kraków", "Nairobi", "Perth", "Québec", "Leeds", "Pune", "Zürich"]
VERBS = (
    "accepted cancelled closed created dropped failed finished loaded opened paused received rejected started".split()
)
KINDS = "py ts rs go md json toml yml sql css".split()


class Writer:
    """What machines write, from one source of chance."""

    def __init__(self, seed: int) -> None:
        self.chance = random.Random(seed)
        self.clock = datetime(2025, 3, 4, 6, 12, 51, 104_000)

    def pick(self, values: list[str] | tuple[str, ...]) -> str:
        return values[int(self.chance.random() * len(values))]

    def below(self, limit: int) -> int:
        return int(self.chance.random() * limit)

    def words(self, least: int, most: int, between: str = " ") -> str:
        return between.join(self.pick(WORDS) for _ in range(least + self.below(most - least + 1)))

    def bytes(self, length: int) -> bytes:
        return bytes(self.below(256) for _ in range(length))

    def time(self) -> datetime:
        self.clock += timedelta(milliseconds=self.below(9_000))
        return self.clock

    def uuid(self) -> str:
        digits = self.bytes(16).hex()
        return "-".join((digits[:8], digits[8:12], "4" + digits[13:16], "a" + digits[17:20], digits[20:]))

    def path(self) -> str:
        folders = [self.pick(("src", "lib", "tests", "app", "internal", "packages/core")), self.words(1, 2, "_")]
        if self.below(2):
            folders.append(self.words(1, 1))
        return "/".join((*folders, self.words(1, 2, self.pick(("_", "-", ""))) + "." + self.pick(KINDS)))

    def email(self) -> str:
        return f"{self.pick(PEOPLE).lower()}.{self.pick(PEOPLE).lower()}@{self.pick(WORDS)}.example"

    def sentence(self) -> str:
        said = f"{self.pick(('The', 'A', 'Each', 'No'))} {self.words(1, 2)} was {self.pick(VERBS)}"
        more = ("", f" by the {self.words(1, 2)}", f" after {self.below(90) + 2} seconds", " again; see the log")
        return said + self.pick(more) + "."

    def order(self) -> dict[str, object]:
        lines = [
            {
                "sku": f"{self.pick(WORDS)[:3].upper()}-{self.below(9_999):04}",
                "qty": 1 + self.below(5),
                "price": self.below(20_000) / 100,
            }
            for _ in range(1 + self.below(3))
        ]
        return {
            "id": self.uuid(),
            "placed_at": self.time().isoformat() + "Z",
            "customer": {
                "name": f"{self.pick(PEOPLE)} {self.pick(PEOPLE)}",
                "email": self.email(),
                "vip": self.below(4) == 0,
            },
            "lines": lines,
            "note": self.sentence() if self.below(2) else None,
            "city": self.pick(CITIES),
        }

    def settings(self) -> dict[str, object]:
        return {
            self.words(1, 2, "_"): {
                self.words(2, 3, "_"): self.pick(("true", "strict", "auto", "off", "/var/lib/" + self.pick(WORDS))),
                "maxRetries": self.below(9),
                "allowed" + self.pick(WORDS).title(): [self.pick(WORDS) for _ in range(1 + self.below(4))],
                "threshold": round(self.chance.random(), 4),
                "nested": {
                    "enabled": self.below(2) == 1,
                    "hosts": [f"10.{self.below(256)}.{self.below(256)}.{self.below(256)}:{8000 + self.below(999)}"],
                },
            }
            for _ in range(3)
        }

    def response(self) -> dict[str, object]:
        return {
            "data": [self.order() for _ in range(2)],
            "meta": {"page": 1 + self.below(9), "total": self.below(5_000)},
            "errors": [],
        }


def app_log(w: Writer) -> str:
    def line() -> str:
        level = w.pick(("INFO", "INFO", "INFO", "DEBUG", "WARN", "ERROR"))
        head = f"{w.time():%Y-%m-%d %H:%M:%S,%f}"[:23] + f" {level:5} [{w.words(1, 2, '-')}-{w.below(16)}] "
        return head + w.pick((
            f"{w.words(2, 2, '.')}.{w.pick(WORDS).title()}Service - {w.sentence()}",
            f"{w.words(1, 3, '.')}: took {w.below(4_000)} ms for id={w.uuid()}",
            f"GET /api/v{1 + w.below(3)}/{w.words(1, 2, '/')}/{w.below(90_000)} -> {w.pick(('200', '204', '404', '500'))} ({w.below(900)}ms)",
            f"{w.words(1, 1)}={w.below(100)} {w.words(1, 1)}={w.chance.random():.3f} {w.pick(WORDS)}='{w.words(1, 3)}'",
        ))  # fmt: skip

    return "\n".join(line() for _ in range(24))


def access_log(w: Writer) -> str:
    agents = (
        "Mozilla/5.0 (X11; Linux x86_64; rv:126.0) Gecko/20100101 Firefox/126.0",
        "curl/8.5.0",
        "kube-probe/1.29",
        "python-requests/2.31.0",
    )
    return "\n".join(
        f"10.{w.below(64)}.{w.below(256)}.{w.below(256)} - {w.pick(('-', w.pick(PEOPLE).lower()))} [{w.time():%d/%b/%Y:%H:%M:%S} +0000] "
        f'"{w.pick(("GET", "POST", "PUT"))} /{w.words(1, 3, "/")}?{w.pick(WORDS)}={w.below(999)} HTTP/1.1" '
        f'{w.pick(("200", "301", "403", "502"))} {w.below(60_000)} "-" "{w.pick(agents)}"'
        for _ in range(16)
    )


def json_log(w: Writer) -> str:
    return "\n".join(
        json.dumps({
            "ts": w.time().replace(tzinfo=timezone.utc).timestamp(), "level": w.pick(("info", "warn", "error")), "logger": w.words(2, 3, "."), "msg": w.sentence(),
            "trace_id": w.bytes(16).hex(), "span_id": w.bytes(8).hex(), "attrs": {w.pick(WORDS): w.below(10_000), "host": f"{w.pick(WORDS)}-{w.below(40)}"},
        })
        for _ in range(12)
    )  # fmt: skip


def journal(w: Writer) -> str:
    def text() -> str:
        return w.pick((
            f"systemd[1]: Started {w.pick(WORDS)}.service - {w.words(2, 4).title()}.",
            f"kernel: [{w.below(999_999)}.{w.below(999_999):06}] eth{w.below(3)}: link {w.pick(('up', 'down'))}, {w.pick(('100', '1000'))} Mbps",
            f"sshd[{w.below(32_000)}]: Failed password for invalid user {w.pick(PEOPLE).lower()} from 203.0.113.{w.below(256)} port {w.below(60_000)} ssh2",
            f"{w.pick(WORDS)}d[{w.below(32_000)}]: {w.sentence()}",
        ))  # fmt: skip

    return "\n".join(f"{w.time():%b %d %H:%M:%S} node-{w.below(9)} {text()}" for _ in range(18))


def csv_people(w: Writer) -> str:
    rows = [
        f'{1000 + i},"{w.pick(PEOPLE)}, {w.pick(PEOPLE)}",{w.email()},{w.time():%Y-%m-%d},{w.pick(CITIES)},{w.below(99_999) / 100:.2f},{w.pick(("true", "false", ""))}'
        for i in range(26)
    ]
    return "\n".join(["id,name,email,joined,city,balance,active", *rows])


def csv_readings(w: Writer) -> str:
    rows = [
        f"{w.time():%Y-%m-%dT%H:%M:%S};S{w.below(40):02};{w.chance.gauss(18, 6):.2f};{w.chance.random() * 100:.1f};{w.chance.gauss(1013, 9):.2f};{w.pick(('OK', 'OK', 'LOW', 'NA'))}"
        for _ in range(40)
    ]
    return "\n".join(["time;sensor;temp_c;humidity_pct;pressure_hpa;flag", *rows])


def number_table(w: Writer) -> str:
    return "\n".join(
        f"{i:>4}" + "".join(f"{w.chance.gauss(0, 10 ** w.below(5)):>14.4f}" for _ in range(5)) for i in range(24)
    )


def ids(w: Writer) -> str:
    return "\n".join(
        w.pick(
            (
                w.uuid(),
                w.bytes(20).hex(),
                "call_" + base64.b64encode(w.bytes(18)).decode().replace("/", "x"),
                f"sha256:{w.bytes(32).hex()}",
            )
        )
        for _ in range(26)
    )


def hex_dump(w: Writer) -> str:
    data = b"\x7fELF\x02\x01\x01" + bytes(9) + w.words(20, 24).encode() + w.bytes(300) + bytes(16)
    lines = []
    for at in range(0, len(data), 16):
        row = data[at : at + 16]
        shown = "".join(chr(b) if 32 <= b < 127 else "." for b in row)
        lines.append(f"{at:08x}  {row[:8].hex(' ')}  {row[8:].hex(' ')}  |{shown}|")
    return "\n".join(lines)


def base64_lines(w: Writer) -> str:
    body = "\n".join(textwrap.wrap(base64.b64encode(w.bytes(900)).decode(), 64))
    return f"-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----"


def base64_inline(w: Writer) -> str:
    return "data:application/octet-stream;base64," + base64.b64encode(w.bytes(1_500)).decode()


def jwt(w: Writer) -> str:
    def part(value: bytes) -> str:
        return base64.urlsafe_b64encode(value).decode().rstrip("=")

    claims = {
        "sub": w.uuid(),
        "iss": "https://login.example/",
        "scope": w.words(3, 5),
        "exp": 1_741_000_000 + w.below(999_999),
    }
    return "Authorization: Bearer " + ".".join(
        (part(b'{"alg":"RS256","typ":"JWT"}'), part(json.dumps(claims).encode()), part(w.bytes(256)))
    )


def grep_output(w: Writer) -> str:
    def code() -> str:
        name = w.words(1, 2, "_")
        return w.pick((
            f"    {name} = self.{w.words(1, 2, '_')}({w.pick(WORDS)}, timeout={w.below(60)})",
            f"def {name}({w.pick(WORDS)}: str) -> None:",
            f"import {{ {w.pick(WORDS)}{w.pick(WORDS).title()} }} from './{w.words(1, 2, '-')}';",
            f"        if err := {w.pick(WORDS)}.{w.pick(WORDS).title()}(ctx); err != nil {{",
            f"// TODO({w.pick(PEOPLE).lower()}): {w.words(3, 7)}",
            f'  "{name}": {w.below(500)},',
        ))  # fmt: skip

    return "\n".join(f"{w.path()}:{1 + w.below(900)}:{code()}" for _ in range(30))


def ls_output(w: Writer) -> str:
    rows = [
        f"{w.pick(('-rw-r--r--', 'drwxr-xr-x', '-rwxr-xr-x'))} {1 + w.below(9):>2} {w.pick(('root', 'deploy', 'www-data')):8} staff {w.below(9_000_000):>9} {w.time():%b %d %H:%M} {w.words(1, 2, w.pick(('_', '-', '.')))}.{w.pick(KINDS)}"
        for _ in range(26)
    ]
    return "\n".join([f"total {w.below(90_000)}", *rows])


def tree_output(w: Writer) -> str:
    lines = ["."]
    for _ in range(9):
        lines.append(f"├── {w.words(1, 2, '-')}")
        lines += [f"│   ├── {w.words(1, 2, '_')}.{w.pick(KINDS)}" for _ in range(w.below(4))]
        lines.append(f"│   └── {w.words(1, 1)}.{w.pick(KINDS)}")
    return "\n".join([*lines, "└── README.md", "", f"{w.below(20)} directories, {w.below(70)} files"])


def find_output(w: Writer) -> str:
    return "\n".join(sorted("./" + w.path() for _ in range(60)))


def pytest_output(w: Writer) -> str:
    lines = ["============================= test session starts =============================="]
    lines += [
        "platform linux -- Python 3.12.3, pytest-8.2.0, pluggy-1.5.0",
        f"rootdir: /home/{w.pick(PEOPLE).lower()}/{w.pick(WORDS)}",
        f"collected {200 + w.below(300)} items",
        "",
    ]
    for done in range(4, 100, 8):
        dots = "".join(w.pick(("." * 9, "." * 14, "..F", "....s")) for _ in range(1 + w.below(3)))
        lines.append(f"{f'tests/test_{w.words(1, 2, chr(95))}.py {dots}':73}[{done:>3}%]")
    name = w.words(2, 3, "_")
    lines += [
        "",
        "=================================== FAILURES ===================================",
        f"{f' test_{name} ':_^80}",
        "",
    ]
    lines += [
        f"    def test_{name}():",
        f"        {w.pick(WORDS)} = make_{w.pick(WORDS)}({w.below(90)})",
        f">       assert {w.pick(WORDS)}.{w.pick(WORDS)} == {w.below(90)}",
    ]
    lines += [
        f"E       AssertionError: assert {w.below(90)} == {w.below(90)}",
        f"E        +  where {w.below(90)} = <{w.pick(WORDS).title()} object at 0x{w.bytes(6).hex()}>.{w.pick(WORDS)}",
        "",
    ]
    return "\n".join(
        [
            *lines,
            f"========================= 1 failed, {w.below(400)} passed in {w.below(9_000) / 100}s =========================",
        ]
    )


def build_output(w: Writer) -> str:
    lines = []
    for _ in range(14):
        name = w.words(1, 2, "-")
        lines.append(f"   Compiling {name} v{w.below(4)}.{w.below(30)}.{w.below(20)}")
        if w.below(4) == 0:
            value = w.words(1, 2, "_")
            lines += [
                f"warning: unused variable: `{value}`",
                f"  --> src/{w.pick(WORDS)}.rs:{w.below(400)}:{w.below(40)}",
                "   |",
                f"{w.below(400):<3}|     let {value} = {w.pick(WORDS)}.{w.pick(WORDS)}()?;",
                f"   |         {'^' * len(value)} help: if this is intentional, prefix it with an underscore: `_{value}`",
            ]
    return "\n".join(
        [*lines, f"    Finished `dev` profile [unoptimized + debuginfo] target(s) in {w.below(9_000) / 100}s"]
    )


def git_log(w: Writer) -> str:
    return "\n\n".join(
        f"commit {w.bytes(20).hex()}\nAuthor: {w.pick(PEOPLE)} {w.pick(PEOPLE)} <{w.email()}>\nDate:   {w.time():%a %b %d %H:%M:%S %Y} +0100\n\n    {w.words(1, 1)}: {w.sentence()}\n\n {w.path()} | {w.below(90)} {'+' * (1 + w.below(20))}{'-' * w.below(9)}"
        for _ in range(8)
    )


def xml(w: Writer) -> str:
    rows = [
        f'  <{(tag := w.pick(WORDS))} id="{w.below(9_999)}" xml:lang="en"><name>{w.words(1, 3).title()}</name><value unit="{w.pick(("kg", "m", "EUR"))}">{w.below(99_999) / 100}</value><!-- {w.words(2, 5)} --></{tag}>'
        for _ in range(16)
    ]
    return "\n".join(
        ['<?xml version="1.0" encoding="UTF-8"?>', '<export xmlns="urn:example:export:1.2">', *rows, "</export>"]
    )


def http_exchange(w: Writer) -> str:
    body = json.dumps(
        {"error": {"code": w.words(2, 3, "_"), "message": w.sentence(), "request_id": "req_" + w.bytes(12).hex()}}
    )
    return "\n".join([
        f"> POST /v1/{w.words(1, 2, '/')} HTTP/2", f"> Host: api.{w.pick(WORDS)}.example", "> User-Agent: curl/8.5.0", "> Content-Type: application/json; charset=utf-8",
        f"> X-Request-Id: {w.uuid()}", ">", f"< HTTP/2 {w.pick(('400', '409', '429'))}", f"< date: {w.time():%a, %d %b %Y %H:%M:%S} GMT", f"< etag: W/\"{w.bytes(8).hex()}\"",
        f"< x-ratelimit-remaining: {w.below(60)}", "< strict-transport-security: max-age=63072000; includeSubDomains; preload", f"< content-length: {len(body)}", "<", body,
    ])  # fmt: skip


def sql_dump(w: Writer) -> str:
    rows = [
        f"({i}, '{w.pick(PEOPLE)} {w.pick(PEOPLE)}', '{w.email()}', '{w.time():%Y-%m-%d %H:%M:%S}', {w.below(9_999) / 100}, NULL)"
        for i in range(1, 22)
    ]
    return (
        "INSERT INTO `"
        + w.words(1, 2, "_")
        + "` (`id`, `name`, `email`, `created_at`, `amount`, `deleted_at`) VALUES\n"
        + ",\n".join(rows)
        + ";"
    )


def env_file(w: Writer) -> str:
    return "\n".join(
        f"{w.words(1, 3, '_').upper()}={w.pick((str(w.below(9_999)), w.pick(WORDS), 'https://' + w.pick(WORDS) + '.example/' + w.pick(WORDS), base64.b64encode(w.bytes(24)).decode(), 'true'))}"
        for _ in range(22)
    )


def pretty(make: Callable[[Writer], object]) -> Callable[[Writer], str]:
    return lambda w: json.dumps(make(w), indent=2, ensure_ascii=False)


def compact(make: Callable[[Writer], object]) -> Callable[[Writer], str]:
    return lambda w: json.dumps(make(w), separators=(",", ":"), ensure_ascii=False)


def escaped(make: Callable[[Writer], object]) -> Callable[[Writer], str]:
    """JSON in a string of JSON, as the arguments of a tool call stand in a request."""
    return lambda w: json.dumps({"name": w.words(2, 2, "_"), "arguments": json.dumps(make(w), indent=1)})


def code_argument(w: Writer) -> object:
    return {
        "path": w.path(),
        "content": "\n".join(
            [
                "#!/bin/sh",
                "set -e",
                *(
                    f'{w.pick(WORDS)}="$({w.pick(WORDS)} --{w.words(1, 2, "-")} {w.below(99)})"\techo "{w.sentence()}"'
                    for _ in range(9)
                ),
            ]
        ),
    }


MAKERS: list[tuple[str, Callable[[Writer], str]]] = [
    ("json pretty", pretty(Writer.order)),
    ("json pretty", pretty(Writer.settings)),
    ("json pretty", pretty(Writer.response)),
    ("json compact", compact(Writer.order)),
    ("json compact", compact(Writer.settings)),
    ("json compact", compact(Writer.response)),
    ("json escaped", escaped(Writer.order)),
    ("json escaped", escaped(Writer.settings)),
    ("json escaped", escaped(code_argument)),
    ("log", app_log),
    ("log", access_log),
    ("log", json_log),
    ("log", journal),
    ("csv", csv_people),
    ("csv", csv_readings),
    ("numbers", number_table),
    ("ids", ids),
    ("ids", ids),
    ("hex dump", hex_dump),
    ("base64", base64_lines),
    ("base64", base64_inline),
    ("base64", jwt),
    ("grep output", grep_output),
    ("grep output", grep_output),
    ("listing", ls_output),
    ("listing", tree_output),
    ("listing", find_output),
    ("tool output", pytest_output),
    ("tool output", build_output),
    ("tool output", git_log),
    ("tool output", http_exchange),
    ("xml", xml),
    ("sql", sql_dump),
    ("config", env_file),
]


# What no table of neighbours can know: how far a thing repeats. Not part of the set; measured beside it.
REPETITIONS = {
    "one letter, 4,000 times": "a" * 4_000,
    "`ab`, 2,000 times": "ab" * 2_000,
    "4,000 spaces": " " * 4_000,
    "4,000 line ends": "\n" * 4_000,
    "`=`, 4,000 times": "=" * 4_000,
    "a rule of box characters (`─`), 4,000": "\u2500" * 4_000,
    "one Han character, 1,000 times": "\u597d" * 1_000,
    "one emoji, 1,000 times": "\U0001f600" * 1_000,
    "`hello world`, 400 times": "hello world " * 400,
}


def read(file: Path) -> list[tuple[str, str]]:
    """Texts with their categories: each begins after a line `=== category`."""
    blocks = file.read_text(encoding="utf-8").split("\n=== ")
    blocks[0] = blocks[0].removeprefix("=== ")
    return [(category, text) for category, _, text in (block.removesuffix("\n").partition("\n") for block in blocks)]


def generated() -> str:
    """The file of generated texts."""
    writer = Writer(SEED)
    return "".join(f"=== {category}\n{make(writer)}\n" for category, make in MAKERS)


def main() -> None:
    (FOLDER / "generated.txt").write_text(generated(), encoding="utf-8", newline="\n")
    texts = [text for name in ("written", "generated") for _, text in read(FOLDER / f"{name}.txt")]
    counts, repetitions = {}, {}
    for family in truth.SOURCES:
        starts = truth.load(family)
        counts[family] = [len(starts(text)) for text in texts]
        repetitions[family] = [len(starts(text)) for text in REPETITIONS.values()]
        sys.stdout.write(f"{family}: {sum(counts[family]):,} tokens in {len(texts)} texts\n")
    stored = {
        "counted": f"{datetime.now():%Y-%m-%d}",
        "made_with": {family: truth.described(family) for family in counts},
        "counts": counts,
        "repetitions": repetitions,
    }
    (FOLDER / "counts.json").write_text(one_line_a_list(stored) + "\n", encoding="utf-8")


def one_line_a_list(value: object) -> str:
    return re.sub(r"\[[^\[\]{}\"]*\]", lambda found: " ".join(found[0].split()), json.dumps(value, indent=1))


if __name__ == "__main__":
    main()
