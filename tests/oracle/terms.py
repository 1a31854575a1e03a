"""The terms that random data and queries are made of: ordinary ones, and all odd ones we could think of."""

from __future__ import annotations

PREFIXES = "BASE <http://ex/> PREFIX : <http://ex/> PREFIX xsd: <http://www.w3.org/2001/XMLSchema#>\n"
EX = "http://ex/"
XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(kind: str, *texts: str) -> list[str]:
    """Literals as SPARQL and (with full datatypes) N-Triples write them."""
    return [f'"{text}"^^<{XSD}{kind}>' for text in texts]


INTEGERS = typed("integer", "0", "1", "2", "3", "-1", "7", "42")
ODD_INTEGERS = [
    *typed("integer", "01", "+1", "-0", "007"),
    *typed("integer", str(2**57 - 1), str(2**57), str(-(2**57) - 1), str(2**62), str(2**63 - 1), str(2**63)),
    *typed("integer", str(-(2**63)), str(-(2**63) - 1), "99999999999999999999", "100000000000000000000"),
    *typed("int", "1", "-5"),
    *typed("long", "9223372036854775807", "2"),
    *typed("unsignedByte", "255"),
    *typed("nonNegativeInteger", "0", "3"),
    *typed("negativeInteger", "-3"),
    *typed("short", "12"),
    *typed("unsignedLong", "18446744073709551615"),
]
DECIMALS = [
    *typed("decimal", "1.0", "1.5", "0.1", "-2.5", "2.50", "0.0", "10"),
    *typed("decimal", "12345678901234567890.5", "0.000000000000000001", "-0.0", "+1.5", ".5"),
]
DOUBLES = [
    *typed("double", "1.0E0", "1.5", "-2.5E0", "0.0E0", "1e3", "1E-7", "1.0E21", "3"),
    *typed("double", "NaN", "INF", "-INF", "-0.0E0", "1.7976931348623157E308", "5E-324", "9007199254740993"),
    *typed("float", "1.5", "NaN", "INF", "0.1", "16777217"),
]
BOOLEANS = [*typed("boolean", "true", "false", "1", "0")]
STRINGS = [
    '""',
    '"a"',
    '"abc"',
    '"ABC"',
    '"a b"',
    '"b"',
    '"1"',
    '"foobar"',
    '"a.c"',
    '"É"',
    '"é𝒳z"',
    '"true"',
]
# Tags are such that their usual spelling is in small letters, which Jena and Kelda otherwise differ in.
LANGUAGE = ['"abc"@en', '"abc"@fr', '"ABC"@en', '""@en', '"bar"@en-fonipa', '"b"@de']
DATETIMES = [
    *typed("dateTime", "2020-01-01T00:00:00Z", "2020-01-01T00:00:00", "2020-01-01T02:00:00+02:00"),
    *typed("dateTime", "2019-12-31T23:59:59.999Z", "2020-06-15T12:30:15.5-05:00", "2021-03-04T05:06:07.250"),
    *typed("dateTime", "1999-12-31T24:00:00Z", "-0044-03-15T00:00:00Z", "12020-01-01T00:00:00Z"),
]
DATES = [
    *typed("date", "2020-01-01", "2020-01-01Z", "2020-01-02", "2020-01-01+05:00"),
    *typed("time", "12:00:00", "12:00:00Z", "23:59:59.5"),
    *typed("gYear", "2020", "2021Z"),
    *typed("gMonthDay", "--02-29"),
]
DURATIONS = [
    *typed("duration", "P1Y", "PT1H", "P1M"),
    *typed("dayTimeDuration", "PT60M", "P1D", "-PT1S"),
    *typed("yearMonthDuration", "P12M", "P1Y"),
]
ILL_TYPED = [
    *typed("integer", "x", "", "1.5"),
    *typed("boolean", "yes", "TRUE"),
    *typed("decimal", "1e0", "abc"),
    *typed("double", "abc"),
    *typed("dateTime", "2020-02-30T00:00:00Z", "yesterday", "2020-01-01"),
    *typed("byte", "300"),
    *typed("nonNegativeInteger", "-1"),
    *typed("date", "2020-13-01"),
]
UNKNOWN = [f'"x"^^<{EX}dt>', f'"y"^^<{EX}dt>', f'"1"^^<{EX}other>', f'"http://ex/a"^^<{XSD}anyURI>']

NUMBERS = INTEGERS * 3 + ODD_INTEGERS + DECIMALS + DOUBLES
TIMES = DATETIMES * 2 + DATES + DURATIONS
LITERALS = INTEGERS * 6 + STRINGS * 3 + NUMBERS + BOOLEANS * 2 + LANGUAGE * 2 + TIMES + ILL_TYPED + UNKNOWN

NODES = [f"<{EX}{name}>" for name in "abcd"]
BLANKS = ["_:b0", "_:b1"]
PREDICATES = [f"<{EX}{name}>" for name in "pqrs"]
GRAPHS = [f"<{EX}{name}>" for name in ("g1", "g2")]
