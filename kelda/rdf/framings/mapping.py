"""A mapping from table rows to triples: what the user writes, checked, and made ready to apply.

    prefixes: {ex: "http://example.org/"}
    time: {column: TIMESTAMP, format: "%Y-%m-%dT%H:%M:%S", timezone: Europe/Copenhagen}
    types: {"ex:obs/{_id}": sosa:Observation}
    triples:
      - ["ex:obs/{_id}", ex:speed, {column: avgSpeed, datatype: xsd:double}]
      - ["ex:obs/{_id}", sosa:madeBySensor, "ex:sensor/{REPORT_ID}"]

`{name}` in a template stands for the row's value, percent-encoded in IRIs; `{+name}` inserts it
as it is, for columns that hold IRIs. A triple with a missing value is left out; a value that is
not valid for its datatype spoils the row. All that can be checked without a row is checked at once.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta, timezone, tzinfo
from typing import Any, Protocol
from urllib.parse import quote
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from pyoxigraph import BlankNode, DefaultGraph, Literal, NamedNode, Quad

from kelda.errors import UsageError
from kelda.rdf.framings.base import RecordError
from kelda.rdf.times import EPOCH, in_calendar, iso_to_ms, ms_to_iso

XSD = "http://www.w3.org/2001/XMLSchema#"
RDF_TYPE = NamedNode("http://www.w3.org/1999/02/22-rdf-syntax-ns#type")

KNOWN_PREFIXES = {
    "rdf": "http://www.w3.org/1999/02/22-rdf-syntax-ns#",
    "rdfs": "http://www.w3.org/2000/01/rdf-schema#",
    "xsd": XSD,
    "owl": "http://www.w3.org/2002/07/owl#",
    "prov": "http://www.w3.org/ns/prov#",
    "sosa": "http://www.w3.org/ns/sosa/",
    "ssn": "http://www.w3.org/ns/ssn/",
    "geo": "http://www.w3.org/2003/01/geo/wgs84_pos#",
}

Row = Callable[[str], str | None]  # a column's value in the row, None if it is missing

# What is no prefix before a colon, though nobody declared it: the schemes of IRIs that data have.
_SCHEMES = """
about acct amqp amqps app arcp ark bitcoin blob cid coap coaps data did dns doi ethereum feed file ftp ftps
geo git go gs hdfs hdl http https im imap info ipfs ipn ipns irc isbn issn jar jdbc kafka ldap ldaps lsid
magnet mailto mid mongodb mqtt mqtts news nfs ni nntp oid opaquelocktoken openid orcid payto pkcs11 pmid pop
purl redis rtsp s3 s3a service sftp sip sips smb sms snmp ssh swh tag tel telnet udp urn uuid view ws wss xmpp
"""
SCHEMES = frozenset(_SCHEMES.split())
_PREFIX = re.compile(r"[A-Za-z][\w.+-]*")


# ------------------------------------------------------------------------------- templates

_PLACE = re.compile(r"\{\{|\}\}|\{(\+?)([^{}]+)\}|[{}]")


class Template:
    """Text with places for column values."""

    def __init__(self, text: str, where: str) -> None:
        self.parts: list[str | tuple[str, bool]] = []  # text, or (column, as it is)
        at = 0
        for found in _PLACE.finditer(text):
            self.parts.append(text[at : found.start()])
            if found[2]:
                self.parts.append((found[2].strip(), bool(found[1])))
            elif len(found[0]) == 2:
                self.parts.append(found[0][0])
            else:
                raise UsageError(
                    f"{where}: lone '{found[0]}' in '{text}' (write '{{{{' or '}}}}' for a brace)"
                )
            at = found.end()
        self.parts.append(text[at:])
        self.columns = [part[0] for part in self.parts if isinstance(part, tuple)]

    def fill(self, row: Row, encode: bool) -> str | None:
        """The text for a row; None if a value is missing."""
        out = []
        for part in self.parts:
            if isinstance(part, str):
                out.append(part)
                continue
            value = row(part[0])
            if value is None:
                return None
            out.append(quote(value, safe="") if encode and not part[1] else value)
        return "".join(out)


Term = NamedNode | BlankNode | Literal


class TermMaker(Protocol):
    """Makes a term for a row; None if a value that it needs is missing."""

    columns: list[str]

    def make(self, row: Row, scope: str) -> Any: ...


class Constant:
    """The same term for every row."""

    def __init__(self, term: Term) -> None:
        self.term = term
        self.columns: list[str] = []

    def make(self, row: Row, scope: str) -> Term:
        return self.term


class IriMaker:
    """An IRI from a template."""

    def __init__(self, template: Template) -> None:
        self.template, self.columns = template, template.columns

    def make(self, row: Row, scope: str) -> NamedNode | None:
        text = self.template.fill(row, encode=True)
        if text is None:
            return None
        try:
            return NamedNode(text)
        except ValueError as error:
            raise RecordError(f"'{text}' is not an IRI: {error}") from None


class BlankMaker:
    """`_:name` is a blank node of the row, the same wherever the row's triples name it."""

    def __init__(self, template: Template) -> None:
        self.template, self.columns = template, template.columns

    def make(self, row: Row, scope: str) -> BlankNode | None:
        text = self.template.fill(row, encode=False)
        return None if text is None else BlankNode(f"{scope}b" + text.encode().hex())


class LiteralMaker:
    """A literal from a column or a template, checked against its datatype."""

    def __init__(
        self, template: Template, datatype: str | None, language: str | None, time: TimeColumn | None
    ) -> None:
        self.template, self.columns, self.language, self.time = template, template.columns, language, time
        self.datatype = datatype or XSD + "string"
        self.node = NamedNode(self.datatype)
        self.check = None if time else DATATYPES.get(self.datatype)

    def make(self, row: Row, scope: str) -> Literal | None:
        text = self.template.fill(row, encode=False)
        if text is None:
            return None
        if self.language:
            return Literal(text, language=self.language)
        if self.time is not None:
            text = ms_to_iso(self.time.to_ms(text))
        elif self.check is not None:
            text = text.strip()
            if not self.check(text):
                raise RecordError(f"{self._what()}: '{text}' is not an xsd:{self.datatype.removeprefix(XSD)}")
        return Literal(text, datatype=self.node)

    def _what(self) -> str:
        return "column " + ", ".join(f"'{name}'" for name in self.columns) if self.columns else "value"


# ------------------------------------------------------------------------------- datatypes


def _matches(pattern: str) -> Callable[[str], bool]:
    compiled = re.compile(pattern, re.ASCII)
    return lambda text: compiled.fullmatch(text) is not None


def _integer(low: int | None = None, high: int | None = None) -> Callable[[str], bool]:
    shape = _matches(r"[+-]?[0-9]{1,4000}")

    def check(text: str) -> bool:
        return shape(text) and (low is None or int(text) >= low) and (high is None or int(text) <= high)

    return check


def _date_time(zone_needed: bool = False) -> Callable[[str], bool]:
    zone = r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])" + ("" if zone_needed else "?")
    shape = _matches(r"-?[0-9]{4,}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]+)?" + zone)
    # Years that Python's calendar does not know are believed.
    return lambda text: (
        shape(text) and (iso_to_ms(text) is not None or not text[:4].isdigit() or text[4] != "-")
    )


_ZONE = r"(Z|[+-](0[0-9]|1[0-4]):[0-5][0-9])?"
_NUMBER = r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)"

# Datatypes that are not listed here are not checked.
DATATYPES: dict[str, Callable[[str], bool]] = {
    XSD + name: check
    for name, check in {
        "boolean": _matches("true|false|1|0"),
        "decimal": _matches(_NUMBER),
        "double": _matches(_NUMBER + r"([eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
        "float": _matches(_NUMBER + r"([eE][+-]?[0-9]+)?|[+-]?INF|NaN"),
        "integer": _integer(),
        "long": _integer(-(2**63), 2**63 - 1),
        "int": _integer(-(2**31), 2**31 - 1),
        "short": _integer(-(2**15), 2**15 - 1),
        "byte": _integer(-128, 127),
        "nonNegativeInteger": _integer(0),
        "positiveInteger": _integer(1),
        "nonPositiveInteger": _integer(None, 0),
        "negativeInteger": _integer(None, -1),
        "unsignedLong": _integer(0, 2**64 - 1),
        "unsignedInt": _integer(0, 2**32 - 1),
        "unsignedShort": _integer(0, 2**16 - 1),
        "unsignedByte": _integer(0, 255),
        "dateTime": _date_time(),
        "dateTimeStamp": _date_time(zone_needed=True),
        "date": _matches(r"-?[0-9]{4,}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])" + _ZONE),
        "time": _matches(r"([01][0-9]|2[0-3]):[0-5][0-9]:[0-5][0-9](\.[0-9]+)?" + _ZONE),
        "gYear": _matches(r"-?[0-9]{4,}" + _ZONE),
        "duration": _matches(
            r"-?P(?=.)([0-9]+Y)?([0-9]+M)?([0-9]+D)?(T(?=.)([0-9]+H)?([0-9]+M)?([0-9]+(\.[0-9]+)?S)?)?"
        ),
    }.items()
}


_UNCHECKED = """
anyAtomicType anySimpleType anyType anyURI base64Binary dayTimeDuration ENTITY gDay gMonth gMonthDay
gYearMonth hexBinary ID IDREF language Name NCName NMTOKEN normalizedString NOTATION QName string token
untypedAtomic yearMonthDuration
"""
XSD_NAMES = frozenset(_UNCHECKED.split()) | {name.removeprefix(XSD) for name in DATATYPES}


# ------------------------------------------------------------------------------------ time

_EPOCH_NUMBER = re.compile(r"[+-]?[0-9]{1,18}(\.[0-9]+)?", re.ASCII)


@dataclass(frozen=True)
class TimeColumn:
    """How a column says when: 'iso', 'epoch-ms', 'epoch-s' or a strptime pattern, and the zone of
    times that name none."""

    column: str
    format: str
    zone: tzinfo

    def to_ms(self, text: str) -> int:
        try:
            ms = self._ms(text.strip())
        except OverflowError:
            ms = None
        if ms is None or not in_calendar(ms):
            raise RecordError(
                f"time column '{self.column}': '{text.strip()}' lies outside the years 1 to 9999"
            )
        return ms

    def _ms(self, text: str) -> int:
        if self.format.startswith("epoch"):
            if _EPOCH_NUMBER.fullmatch(text) is None:
                raise RecordError(f"time column '{self.column}': '{text}' is not a number")
            whole, _, fraction = text.partition(".")
            if self.format == "epoch-ms":
                return int(whole)
            ms = int(fraction[:3].ljust(3, "0"))
            return int(whole) * 1000 + (-ms if whole.startswith("-") else ms)
        try:
            moment = _iso(text) if self.format == "iso" else datetime.strptime(text, self.format)
        except ValueError:
            shape = "an ISO date and time" if self.format == "iso" else f"of the form '{self.format}'"
            raise RecordError(f"time column '{self.column}': '{text}' is not {shape}") from None
        if moment.tzinfo is None:
            moment = moment.replace(tzinfo=self.zone)
        return (moment - EPOCH) // timedelta(milliseconds=1)


def _iso(text: str) -> datetime:
    """An ISO date and time, with its zone if it names one."""
    ms = iso_to_ms(text)
    if ms is None:
        raise ValueError("not an ISO date")
    moment = EPOCH + timedelta(milliseconds=ms)
    names_zone = any(sign in text[10:] for sign in "Z+-")
    return moment if names_zone else moment.replace(tzinfo=None)


# --------------------------------------------------------------------------------- compile


Each = Callable[[Sequence[str]], Iterable[Row]]  # of some columns: a row for each combination of their values


@dataclass(frozen=True)
class TableMapping:
    """A checked mapping. `quads` and `time` turn a row into what it means."""

    triples: tuple[tuple[TermMaker, NamedNode, TermMaker], ...]
    time_column: TimeColumn | None
    graph: TermMaker | None
    missing: frozenset[str]
    columns: tuple[str, ...]  # all that the mapping uses, in the order of mention
    delimiter: str
    header: tuple[str, ...] | None

    def quads(self, row: Row, scope: str, each: Each | None = None) -> tuple[Quad, ...]:
        """The row's quads; RecordError if a value is not valid or nothing is left to say. Where columns have
        several values, `each` gives the rows with one of them."""
        graph: Any = DefaultGraph()
        if self.graph is not None:
            graph = self.graph.make(row, scope)
            if graph is None:
                raise RecordError(f"no value for the graph name ({', '.join(self.graph.columns)})")
        quads = []
        for subject_maker, predicate, object_maker in self.triples:
            for one in (row,) if each is None else each([*subject_maker.columns, *object_maker.columns]):
                subject = subject_maker.make(one, scope)
                object = object_maker.make(one, scope)
                if subject is not None and object is not None:
                    quads.append(Quad(subject, predicate, object, graph))
        if not quads:
            raise RecordError(f"nothing to say: no value in the columns {', '.join(self.columns)}")
        return tuple(quads)

    def time(self, row: Row) -> int | None:
        if self.time_column is None:
            return None
        value = row(self.time_column.column)
        if value is None:
            raise RecordError(f"no time: column '{self.time_column.column}' has no value")
        return self.time_column.to_ms(value)


_KEYS = ("prefixes", "time", "graph", "types", "triples", "missing", "delimiter", "columns")
_OBJECT_KEYS = ("column", "template", "value", "iri", "datatype", "lang", "format", "timezone")


def compile_mapping(given: Mapping[str, Any]) -> TableMapping:
    """The mapping made ready; UsageError with the place of what is wrong."""
    _known_keys(given, _KEYS, "the mapping")
    compiler = _Compiler(_string_table(given.get("prefixes", {}), "prefixes"))
    triples = compiler.types(given.get("types", {})) + compiler.triples(given.get("triples", []))
    if not triples:
        raise UsageError("the mapping makes no triples: give 'triples' or 'types'")
    time = None
    if given.get("time") is not None:
        time = compiler.time(given["time"], "time")
    graph = compiler.resource(given["graph"], "graph") if given.get("graph") is not None else None
    missing = _strings(given.get("missing", []), "missing")
    header = _strings(given["columns"], "columns") if given.get("columns") is not None else None
    delimiter = given.get("delimiter", ",")
    if not isinstance(delimiter, str) or len(delimiter.encode()) != 1 or delimiter in '"\r\n':
        raise UsageError(f"delimiter: expected one (ASCII) character, not {delimiter!r}")
    used: dict[str, None] = {}
    for maker in [time_maker for triple in triples for time_maker in (triple[0], triple[2])] + (
        [graph] if graph else []
    ):
        used.update(dict.fromkeys(maker.columns))
    if time:
        used[time.column] = None
    if header is not None:
        absent = [name for name in used if name not in header]
        if absent:
            raise UsageError(f"the mapping uses column '{absent[0]}', which its 'columns' do not name")
    return TableMapping(
        triples=tuple(triples),
        time_column=time,
        graph=graph,
        missing=frozenset(missing),
        columns=tuple(used),
        delimiter=delimiter,
        header=tuple(header) if header is not None else None,
    )


class _Compiler:
    def __init__(self, prefixes: dict[str, str]) -> None:
        self.prefixes = KNOWN_PREFIXES | prefixes

    def iri_text(self, text: Any, where: str) -> str:
        """A prefixed name or an IRI, spelled out; may be a template."""
        if not isinstance(text, str) or not text:
            raise UsageError(f"{where}: expected an IRI or a prefixed name, not {text!r}")
        if text.startswith("<") and text.endswith(">"):
            return text[1:-1]
        prefix, colon, local = text.partition(":")
        if not colon or local.startswith("//"):
            return text
        if prefix in self.prefixes:
            return self.prefixes[prefix] + local
        if _PREFIX.fullmatch(prefix) and prefix.lower() not in SCHEMES:
            raise UsageError(
                f"{where}: the prefix '{prefix}:' of '{text}' is not declared"
                f"{_did_you_mean(prefix, self.prefixes, ':')}. Declare it under 'prefixes', or write "
                f"<{text}> if that is a whole IRI"
            )
        return text

    def datatype(self, text: Any, where: str) -> str:
        """The IRI of a datatype; of those of XML Schema only such as there are."""
        iri: str = self.constant_iri(text, where).value
        name = iri.removeprefix(XSD)
        if iri != name and name not in XSD_NAMES:
            raise UsageError(
                f"{where}: there is no datatype '{text}'{_did_you_mean(name, XSD_NAMES, '', 'xsd:')}"
            )
        return iri

    def constant_iri(self, text: Any, where: str) -> NamedNode:
        return self._constant(self.iri_text(text, where), text, where)

    def _constant(self, spelled: str, text: Any, where: str) -> NamedNode:
        try:
            return NamedNode(spelled)
        except ValueError as error:
            raise UsageError(
                f"{where}: '{text}' is neither an IRI nor a name with a declared prefix ({error})"
            ) from None

    def resource(self, text: Any, where: str) -> TermMaker:
        if isinstance(text, str) and text.startswith("_:"):
            if len(text) == 2:
                raise UsageError(f"{where}: a blank node needs a name, such as _:result")
            return BlankMaker(Template(text[2:], where))
        template = Template(self.iri_text(text, where), where)
        if not template.columns:
            return Constant(self._constant(template.fill(lambda _: None, encode=True) or "", text, where))
        as_it_is = isinstance(template.parts[1], tuple) and template.parts[1][1] and not template.parts[0]
        if not as_it_is:  # the row's value may be a whole IRI; otherwise the text around it must be right
            try:
                NamedNode(template.fill(lambda _: "0", encode=True) or "")
            except ValueError as error:
                raise UsageError(
                    f"{where}: '{text}' makes no IRI ({error}); is the prefix declared? "
                    "A column that holds whole IRIs is written {+column}"
                ) from None
        return IriMaker(template)

    def types(self, given: Any) -> list[tuple[TermMaker, NamedNode, TermMaker]]:
        if not isinstance(given, Mapping):
            raise UsageError(
                'types: expected subjects with their classes, such as {"ex:obs/{id}": sosa:Observation}'
            )
        out: list[tuple[TermMaker, NamedNode, TermMaker]] = []
        for subject, classes in given.items():
            where = f"types of '{subject}'"
            for name in classes if isinstance(classes, list) else [classes]:
                out.append((self.resource(subject, where), RDF_TYPE, self.resource(name, where)))
        return out

    def triples(self, given: Any) -> list[tuple[TermMaker, NamedNode, TermMaker]]:
        if not isinstance(given, Sequence) or isinstance(given, str):
            raise UsageError("triples: expected a list of [subject, predicate, object]")
        out: list[tuple[TermMaker, NamedNode, TermMaker]] = []
        for number, triple in enumerate(given, 1):
            where = f"triple {number}"
            if not isinstance(triple, Sequence) or isinstance(triple, str) or len(triple) != 3:
                raise UsageError(f"{where}: expected [subject, predicate, object], not {triple!r}")
            subject = self.resource(triple[0], f"{where}, subject")
            predicate = RDF_TYPE if triple[1] == "a" else self.constant_iri(triple[1], f"{where}, predicate")
            out.append((subject, predicate, self.object(triple[2], f"{where}, object")))
        return out

    def object(self, given: Any, where: str) -> TermMaker:
        if isinstance(given, str):
            return self.resource(given, where)
        if not isinstance(given, Mapping):
            raise UsageError(
                f"{where}: expected an IRI template or one of {{column: …}}, {{template: …}}, {{value: …}}, "
                f"{{iri: …}}, not {given!r}"
            )
        _known_keys(given, _OBJECT_KEYS, where)
        sources = [key for key in ("column", "template", "value", "iri") if key in given]
        if len(sources) != 1:
            raise UsageError(
                f"{where}: expected one of column, template, value, iri, not {len(sources)} of them"
            )
        source = sources[0]
        if source == "iri":
            if len(given) > 1:
                raise UsageError(f"{where}: an IRI has no datatype and no language")
            return self.resource(given["iri"], where)
        datatype = self.datatype(given["datatype"], where) if "datatype" in given else None
        language = given.get("lang")
        if language is not None and datatype is not None:
            raise UsageError(f"{where}: a literal has a language or a datatype, not both")
        value = given[source]
        if source == "value" and isinstance(value, bool):
            value = str(value).lower()
        if source == "value" and isinstance(value, (int, float)):
            value = str(value)
        if not isinstance(value, str):
            raise UsageError(f"{where}: '{source}' must be text, not {value!r}")
        time = None
        if "format" in given or "timezone" in given:
            if source != "column" or datatype not in (XSD + "dateTime", XSD + "dateTimeStamp"):
                raise UsageError(
                    f"{where}: 'format' and 'timezone' are for a column of datatype xsd:dateTime"
                )
            time = self.time(
                {key: given[key] for key in ("column", "format", "timezone") if key in given}, where
            )
        template = Template("", where)
        if source == "template":
            template = Template(value, where)
        else:
            template.parts = [(value, True)] if source == "column" else [value]
            template.columns = [value] if source == "column" else []
        try:
            maker = LiteralMaker(template, datatype, language, time)
            if language is not None:
                Literal("", language=language)
        except (ValueError, TypeError) as error:
            raise UsageError(f"{where}: {error}") from None
        if template.columns:
            return maker
        try:
            constant = maker.make(lambda _: None, "")
        except RecordError as error:
            raise UsageError(f"{where}: {error}") from None
        assert constant is not None  # nothing can be missing
        return Constant(constant)

    def time(self, given: Any, where: str) -> TimeColumn:
        if isinstance(given, str):
            given = {"column": given}
        if not isinstance(given, Mapping):
            raise UsageError(f"{where}: expected {{column: …, format: …, timezone: …}}, not {given!r}")
        _known_keys(given, ("column", "format", "timezone"), where)
        column, format, zone = given.get("column"), given.get("format", "iso"), given.get("timezone", "UTC")
        if not isinstance(column, str):
            raise UsageError(f"{where}: say which column holds the time")
        if not isinstance(format, str) or (
            format not in ("iso", "epoch-ms", "epoch-s") and "%" not in format
        ):
            raise UsageError(
                f"{where}: format {format!r} is none of iso, epoch-ms, epoch-s, or a pattern such as %d.%m.%Y"
            )
        if "%" in format:
            try:
                datetime.strptime(datetime(2001, 2, 3, 4, 5, 6, tzinfo=timezone.utc).strftime(format), format)
            except (ValueError, re.error) as error:
                raise UsageError(f"{where}: the format '{format}' cannot be used: {error}") from None
        try:
            found = timezone.utc if zone == "UTC" else ZoneInfo(zone)
        except (ZoneInfoNotFoundError, ValueError, TypeError, OSError):
            raise UsageError(
                f"{where}: unknown time zone {zone!r}; use a name such as Europe/Copenhagen"
            ) from None
        return TimeColumn(column, format, found)


def _did_you_mean(name: str, known: Iterable[str], behind: str = "", before: str = "") -> str:
    close = difflib.get_close_matches(name, list(known), 1)
    return f"; did you mean '{before}{close[0]}{behind}'?" if close else ""


def _known_keys(given: Mapping[str, Any], known: tuple[str, ...], where: str) -> None:
    for key in given:
        if key not in known:
            raise UsageError(f"{where}: unknown '{key}'; there are: {', '.join(known)}")


def _string_table(given: Any, where: str) -> dict[str, str]:
    if not isinstance(given, Mapping) or not all(
        isinstance(part, str) for item in given.items() for part in item
    ):
        raise UsageError(f"{where}: expected names with their IRIs, such as {{ex: http://example.org/}}")
    return dict(given)


def _strings(given: Any, where: str) -> list[str]:
    if not isinstance(given, list) or not all(isinstance(part, str) for part in given):
        raise UsageError(f"{where}: expected a list of texts, not {given!r}")
    return given
