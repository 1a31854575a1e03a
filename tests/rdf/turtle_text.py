"""Random Turtle and TriG in many spellings, as messages or as a document."""

from __future__ import annotations

from random import Random

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
TIMES = (
    "http://www.w3.org/ns/prov#generatedAtTime",
    "http://www.w3.org/ns/sosa/resultTime",
    "http://www.w3.org/ns/sosa/phenomenonTime",
    "https://www.w3.org/ns/activitystreams#published",
)
HEAD = (
    'VERSION "1.2-messages"\nPREFIX ex: <http://example.org/>\nPREFIX sosa: <http://www.w3.org/ns/sosa/>\n'
    f"PREFIX xsd: <{XSD}>\nPREFIX : <http://ex/#>\n@prefix prov: <http://www.w3.org/ns/prov#> .\n"
    f"PREFIX rdf: <{RDF}>\nPREFIX odd: <http://a>\nprefix u: <urn:x:>\n"
    f"PREFIX long: <http://example.org/{'long/' * 150}>\n"
)
NAMES = [
    "a",
    "b1",
    "long_name-of.a:thing",
    "",
    "0",
    "x" * 70,
    "y" * 200,
    "o17",
    "o18",
    "-d",
    "e.",
    "é",
    "p%20",
    "q\\~",
]
PREFIXES = ["ex:"] * 5 + ["long:", ":", "u:", "odd:", "nix:", "sosa:", "xsd:"]
IRIS = [
    "<http://ex/a>",
    "<http://ex/b/../c>",
    "<https://host.example:80/p?q=1#f>",
    "<urn:x:1>",
    "<http://ex/é>",
    "<http://ex/" + "z" * 150 + ">",
    "<rel>",
    "<#f>",
    "<>",
    "<http://ex/a b>",
    "<../up>",
    "<http://ex/\\u0061>",
]
DATES = [
    "2024-01-01T00:00:00Z",
    "2024-01-01T00:00:00",
    "2024-02-29T12:34:56.789+02:00",
    "2024-02-29T12:34:56.7891234-00:30",
    "2023-02-29T00:00:00Z",
    "1704067200000",
    "-5",
    "+7",
    "007",
    "2024-01-01",
    " 2024-01-01T00:00:00Z ",
    "0001-01-01T00:00:00+14:00",
    "9999-12-31T23:59:59.9999999999Z",
    "31690708-07-05T01:46:40Z",
    "9" * 18,
    "then",
    "true",
]
TEXTS = [
    "x",
    "",
    "a text that is longer",
    "é😀",
    "tab\\t",
    'nl\\nq\\"b\\\\',
    "\\b\\f\\'",
    "\\u00e9",
    "\\x",
    "\x00",
    "12345678",
]


def spelled(draw: Random, text: str) -> str:
    """A string in one of the four kinds of quotes."""
    kind = draw.randrange(8)
    if kind == 0:
        return f"'{text}'"
    if kind == 1:
        return f'"""{text}{draw.choice(["", chr(10) + "b", chr(13), chr(34) + "b", "#"])}"""'
    if kind == 2:
        return f"'''{text}{draw.choice(['', chr(10) + 'b', chr(39) + 'b', chr(34)])}'''"
    return f'"{text}"'


def iri(draw: Random, calm: bool) -> str:
    names = NAMES[:9] if calm else NAMES
    if draw.random() < 0.7:
        prefix = draw.choice(PREFIXES[:8] if calm else PREFIXES)
        return prefix + draw.choice(names)
    return draw.choice(IRIS[:6] if calm else IRIS)


def literal(draw: Random, calm: bool) -> str:
    kind = draw.randrange(6)
    if kind == 0:
        numbers = [
            "1",
            "-5",
            "+7",
            "21.5",
            "0.10",
            "-.5",
            "1e6",
            "1.5E-3",
            "007",
            "9" * 30,
            "1.0",
            "5.e3",
            "1.",
        ]
        return draw.choice(numbers[:11] if calm else numbers)
    if kind == 1:
        return draw.choice(["true", "false"])
    text = spelled(draw, draw.choice(TEXTS[:7] if calm else TEXTS))
    if kind == 2:
        tags = ["en", "EN-gb", "de-Latn-DE", "es-419", "x-priv", "en-a-bbb", "e", "en--ltr"]
        return f"{text}@{draw.choice(tags[:4] if calm else tags)}"
    if kind == 3:
        types = [
            "ex:t",
            "long:t",
            "long:t",
            "xsd:string",
            "xsd:integer",
            f"<{XSD}decimal>",
            "xsd:dateTime",
            "xsd:boolean",
        ]
        types += ["u:b", "<http://ex/dt>"] + (
            [] if calm else ["rdf:langString", "rdf:HTML", "odd:t", "nix:t", "_:b"]
        )
        value = draw.choice([text, '"12"', '"1.50"', '"true"', f'"{draw.choice(DATES)}"'])
        return f"{value}^^{draw.choice(types)}"
    return text


def blank(draw: Random) -> str:
    return f"_:{draw.choice(['b', 'c', 'b1', 'x-y_z', '0'])}"


def object_(draw: Random, calm: bool, depth: int) -> str:
    kind = draw.randrange(10)
    if kind < 3:
        return iri(draw, calm)
    if kind < 7 or depth > 2:
        return literal(draw, calm)
    if kind == 7:
        return blank(draw)
    if kind == 8:
        inner = "" if draw.random() < 0.2 else predicates(draw, calm, depth + 1)
        return f"[{gap(draw)}{inner}]"
    return (
        "("
        + "".join(gap(draw) + object_(draw, calm, depth + 1) + " " for _ in range(draw.randrange(4)))
        + ")"
    )


def gap(draw: Random) -> str:
    return draw.choice([" "] * 8 + ["\n", "\t", "  ", ' # a comment; with . "things\n', "\r\n"])


def predicates(draw: Random, calm: bool, depth: int) -> str:
    parts = []
    for _ in range(draw.choice([1, 1, 2, 3])):
        verb = "a" if draw.random() < 0.1 else iri(draw, calm)
        objects = f"{gap(draw)},".join(
            gap(draw) + object_(draw, calm, depth) for _ in range(draw.choice([1, 1, 1, 2]))
        )
        parts.append(verb + objects)
    if depth == 0 and draw.random() < 0.5:
        when = draw.choice(["prov:generatedAtTime", "sosa:resultTime", f"<{TIMES[2]}>", f"<{TIMES[3]}>"])
        value = f'"{draw.choice(DATES[:4] if calm else DATES)}"'
        kinds = ["", "^^xsd:dateTime", f"^^<{XSD}dateTime>", "@en"]
        parts.append(f"{when} {value}{draw.choice(kinds)}" if draw.random() < 0.9 else f"{when} ex:never")
    ends = draw.choice(["", "", "", ";", " ; ;"])
    return f"{gap(draw)};{gap(draw)}".join(parts) + ends


def statement(draw: Random, calm: bool, in_graph: bool = False) -> str:
    kind = draw.randrange(12)
    if kind == 0:
        subject = blank(draw)
    elif kind == 1:
        subject = "[]"
    elif kind == 2:
        subject = f"[{gap(draw)}{predicates(draw, calm, 1)}{gap(draw)}]"
        if draw.random() < 0.5:
            return f"{subject}{gap(draw)}."
    elif kind == 3 and not calm:
        subject = "(1 2)"
    else:
        subject = iri(draw, calm)
    return f"{subject}{gap(draw)}{predicates(draw, calm, 0)}{draw.choice([' ', '', gap(draw)])}."


def directive(draw: Random, calm: bool) -> str:
    lines = (
        HEAD.splitlines()
        if calm
        else [
            *HEAD.splitlines(),
            "PREFIX ex: <http://other/>",
            "@prefix ex: <http://example.org/> .",
            "BASE <http://base/dir/file#f>",
            "@base <rel/> .",
            "PREFIX ex: <#>",
            "PREFIX ex <http://x/>",
            'VERSION "9"',
            "VERSION '1.2-messages'",
        ]
    )
    return draw.choice(lines) + "\n"


def quads_line(draw: Random, calm: bool) -> str:
    subject = draw.choice(["<http://ex/a>", "<http://ex/b>", "_:b"])
    object_ = draw.choice(
        ["<http://ex/o>", '"x"', "_:c", f'"1.5"^^<{XSD}decimal>', '"a"@en', '"2024-01-01T00:00:00Z"']
    )
    graph = draw.choice([" <http://ex/g>", " _:g", "", " <http://ex/g2>"])
    end = "\n" if calm or draw.random() < 0.9 else draw.choice([" ", "\r", "\n\n", " # c\n"])
    predicate = draw.choice([f"<{TIMES[0]}>", "<http://ex/p>", "<http://ex/q>"])
    return f"{subject} {predicate} {object_}{graph} .{end}"


def said(draw: Random, calm: bool) -> str:
    """What a message says."""
    kind = draw.randrange(10)
    if kind == 0:
        return "\n" + "".join(quads_line(draw, calm) for _ in range(draw.randrange(4)))
    parts = []
    for _ in range(draw.choice([0, 1, 1, 1, 2, 3])):
        if draw.random() < (0.1 if calm else 0.25):
            parts.append(directive(draw, calm))
        if draw.random() < 0.12:
            name = draw.choice(["", "ex:g ", "GRAPH ex:g ", "_:g ", "<http://ex/g>", "graph\n<http://ex/g> "])
            inner = gap(draw).join(statement(draw, calm, True) for _ in range(draw.randrange(3)))
            parts.append(f"{name}{{{gap(draw)}{inner[: -1 if draw.random() < 0.3 else None]}}}")
        else:
            parts.append(statement(draw, calm))
    return gap(draw).join(parts)


def messages(draw: Random, *, calm: bool) -> bytes:
    """A stream of messages; with `calm`, nearly all of them are as usual."""
    text = [HEAD if draw.random() < 0.9 else ""]
    if draw.random() < 0.3:
        text.append("BASE <http://base/dir/file#f>\n")
    for _ in range(draw.randrange(8)):
        text.append(said(draw, calm))
        text.append(
            draw.choice(["\nMESSAGE\n"] * 6 + ["\n@message .\n", " message ", "\nMESSAGE\r\n", "\nMESSAGE "])
        )
    if draw.random() < 0.4:
        text.append(said(draw, calm))
    data = "".join(text).encode()
    return data if calm or draw.random() < 0.5 else mutated(draw, data)


def document(draw: Random, *, calm: bool) -> bytes:
    """A file of Turtle."""
    text = [HEAD.partition("\n")[2]]
    for _ in range(draw.randrange(8)):
        if draw.random() < 0.3:
            text.append(directive(draw, calm))
        text.append(statement(draw, calm) + gap(draw))
    data = "".join(text).encode()
    return data if calm or draw.random() < 0.5 else mutated(draw, data)


def mutated(draw: Random, data: bytes) -> bytes:
    """Some bytes are others, gone or twice there."""
    some = bytearray(data)
    for _ in range(draw.choice([1, 1, 2, 5])):
        if not some:
            break
        at = draw.randrange(len(some))
        what = draw.randrange(4)
        odd = draw.choice(
            [b"\x00", b'"', b"<", b">", b".", b";", b"'", b"\\", b"\xff", b"[", b")", b"\r", b"#", b"@", b":"]
        )
        if what == 0:
            some[at : at + 1] = odd
        elif what == 1:
            some[at:at] = odd
        elif what == 2:
            del some[at : at + draw.choice([1, 1, 10])]
        else:
            end = at + draw.randrange(30)
            some[at:at] = some[at:end]
    return bytes(some)
