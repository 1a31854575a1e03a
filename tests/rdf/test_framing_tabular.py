"""CSV and JSON in: what a mapping makes of a row, which rows it refuses, and which mappings are refused."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from kelda.errors import UsageError
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import read_events

DATA = Path(os.environ.get("KELDA_DATA", Path(__file__).parents[3] / "shared" / "data")) / "citybench"
XSD = "http://www.w3.org/2001/XMLSchema#"


def read(text: str, mapping, format: str = "csv", **options) -> tuple[list[Event], list[Reject]]:
    rejects: list[Reject] = []
    return list(
        read_events(text.encode(), format=format, mapping=mapping, on_reject=rejects.append, **options)
    ), rejects


def one(text: str, object, **more) -> str | None:
    """The object that the mapping makes of column x, as text; None if the triple is left out."""
    mapping = {
        "prefixes": {"ex": "http://ex/"},
        "triples": [["ex:s", "ex:p", object], ["ex:s", "a", "ex:T"]],
        **more,
    }
    events, rejects = read(json.dumps({"x": text, "y": "why"}), mapping, "json")
    assert not rejects, rejects
    made = [str(quad.object) for quad in events[0].quads if quad.predicate.value == "http://ex/p"]
    return made[0].replace(XSD, "xsd:") if made else None


TRAFFIC = {
    "prefixes": {"ex": "http://ex/"},
    "time": {"column": "TIMESTAMP", "format": "%Y-%m-%dT%H:%M:%S", "timezone": "UTC"},
    "types": {"ex:obs/{_id}": ["sosa:Observation", "ex:Traffic"]},
    "triples": [
        ["ex:obs/{_id}", "ex:speed", {"column": "avgSpeed", "datatype": "xsd:double"}],
        ["ex:obs/{_id}", "sosa:madeBySensor", {"iri": "ex:sensor/{REPORT_ID}"}],
    ],
}


def test_a_row_is_an_event():
    events, rejects = read("_id,avgSpeed,REPORT_ID,TIMESTAMP\n7,52,a b/c,1970-01-01T00:00:02\n", TRAFFIC)
    assert not rejects
    assert events[0].time == 2000
    assert [str(quad) for quad in events[0].quads] == [
        "<http://ex/obs/7> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://www.w3.org/ns/sosa/Observation>",
        "<http://ex/obs/7> <http://www.w3.org/1999/02/22-rdf-syntax-ns#type> <http://ex/Traffic>",
        f'<http://ex/obs/7> <http://ex/speed> "52"^^<{XSD}double>',
        "<http://ex/obs/7> <http://www.w3.org/ns/sosa/madeBySensor> <http://ex/sensor/a%20b%2Fc>",
    ]


def test_mapping_from_a_yaml_or_json_file(tmp_path):
    text = "_id,avgSpeed,REPORT_ID,TIMESTAMP\n7,52,1,1970-01-01T00:00:02\n"
    (tmp_path / "m.json").write_text(json.dumps(TRAFFIC))
    (tmp_path / "m.yaml").write_text(
        'prefixes: {ex: "http://ex/"}\n'
        'time: {column: TIMESTAMP, format: "%Y-%m-%dT%H:%M:%S", timezone: UTC}\n'
        'types: {"ex:obs/{_id}": [sosa:Observation, ex:Traffic]}\n'
        "triples:\n"
        '  - ["ex:obs/{_id}", ex:speed, {column: avgSpeed, datatype: xsd:double}]\n'
        '  - ["ex:obs/{_id}", sosa:madeBySensor, {iri: "ex:sensor/{REPORT_ID}"}]\n'
    )
    expected = read(text, TRAFFIC)
    assert read(text, tmp_path / "m.json") == expected
    assert read(text, str(tmp_path / "m.yaml")) == expected


def test_objects():
    assert one("é", {"column": "x"}) == '"é"'
    assert one(" 1.50 ", {"column": "x", "datatype": "xsd:double"}) == '"1.50"^^<xsd:double>'
    assert one("v", {"template": "{x} and {y} {{}}", "lang": "en"}) == '"v and why {}"@en'
    assert one("v", {"value": "const"}) == '"const"'
    assert one("v", {"value": 5, "datatype": "xsd:integer"}) == '"5"^^<xsd:integer>'
    assert one("a/é", "ex:{x}") == "<http://ex/a%2F%C3%A9>"
    assert one("http://a/b?c", {"iri": "{+x}"}) == "<http://a/b?c>"
    assert one("b", {"iri": "<http://ex/{x}>"}) == "<http://ex/b>"
    assert one("v", "_:it") == "_:r0b6974"
    assert (
        one(
            "1970-01-01 00:00:01.5",
            {"column": "x", "datatype": "xsd:dateTime", "format": "%Y-%m-%d %H:%M:%S.%f"},
        )
        == '"1970-01-01T00:00:01.5Z"^^<xsd:dateTime>'
    )


def test_a_triple_with_a_missing_value_is_left_out():
    assert one("", {"column": "x"}) is None
    assert one("  ", "ex:{x}") is None
    assert one("NA", {"column": "x"}, missing=["NA"]) is None
    assert one("v", {"column": "nowhere"}) is None


def test_a_row_that_says_nothing_is_rejected():
    events, rejects = read("a,b\n,1\n2,3\n", {"triples": [["a:{a}", "a:p", {"column": "b"}]]})
    assert len(events) == 1
    assert rejects[0].line == 2 and rejects[0].reason == "nothing to say: no value in the columns a, b"


@pytest.mark.parametrize(
    ("datatype", "good", "bad"),
    [
        ("integer", ["-1", "+007"], ["1.0", "x", "1e3", "٣"]),
        ("int", ["2147483647"], ["2147483648"]),
        ("unsignedByte", ["0", "255"], ["-1", "256"]),
        ("decimal", ["1", ".5", "-1."], ["1e3", "."]),
        ("double", ["1", "1e-3", "INF", "NaN", "-.5E+2"], ["7,4", "inf", "e3"]),
        ("boolean", ["true", "0"], ["True", "yes"]),
        (
            "dateTime",
            ["2014-08-01T07:50:00", "2014-08-01T07:50:00.1+02:00"],
            ["2014-08-01 07:50:00", "2014-02-30T00:00:00"],
        ),
        ("dateTimeStamp", ["2014-08-01T07:50:00Z"], ["2014-08-01T07:50:00"]),
        ("date", ["2014-08-01"], ["01.08.2014", "2014-13-01"]),
        ("duration", ["P1DT2H", "-PT1.5S"], ["P", "PT", "1h"]),
        ("string", ["", "x"], []),
    ],
)
def test_values_are_checked_against_their_datatype(datatype, good, bad):
    mapping = {
        "triples": [["a:s", "a", "a:T"], ["a:s", "a:p", {"column": "x", "datatype": f"xsd:{datatype}"}]]
    }
    for value in good:
        events, rejects = read(json.dumps({"x": value}), mapping, "json")
        assert len(events) == 1 and not rejects, value
    for value in bad:
        events, rejects = read(json.dumps({"x": value}), mapping, "json")
        assert not events, value
        assert rejects[0].reason == f"column 'x': '{value}' is not an xsd:{datatype}"


@pytest.mark.parametrize(
    ("time", "value", "expected"),
    [
        ("t", "1970-01-01T00:00:01Z", 1000),
        ({"column": "t"}, "1970-01-01 00:00:01.25", 1250),
        ({"column": "t", "timezone": "Europe/Copenhagen"}, "1970-01-01T01:00:01", 1000),
        ({"column": "t", "timezone": "Europe/Copenhagen"}, "1970-01-01T00:00:01Z", 1000),
        ({"column": "t", "format": "epoch-ms"}, "1500", 1500),
        ({"column": "t", "format": "epoch-s"}, "1.5", 1500),
        ({"column": "t", "format": "epoch-s"}, "-1.5", -1500),
        ({"column": "t", "format": "%d.%m.%Y %H:%M", "timezone": "Asia/Tokyo"}, "01.01.1970 09:01", 60_000),
        ({"column": "t", "format": "epoch-ms"}, "noon", None),
        ({"column": "t"}, "noon", None),
        ({"column": "t", "format": "%d.%m.%Y"}, "noon", None),
        ({"column": "t"}, "", None),
    ],
)
def test_time(time, value, expected):
    events, rejects = read(f"t,x\n{value},1\n", {"time": time, "triples": [["a:s", "a:p", {"column": "x"}]]})
    if expected is None:
        assert not events and "column 't'" in rejects[0].reason
    else:
        assert not rejects and events[0].time == expected


def test_without_a_time_column_the_triples_tell():
    mapping = {"triples": [["a:s", "sosa:resultTime", {"column": "t"}]]}
    assert read("t\n1970-01-01T00:00:01Z\n", mapping)[0][0].time == 1000
    assert read("t\n5\n", mapping, time_predicate="http://www.w3.org/ns/sosa/resultTime")[0][0].time == 5


def test_csv_quotes_line_breaks_and_broken_rows():
    events, rejects = read(
        'a,b\n1,"x ""y"",\nz"\n2,5" wide\n3\n4,"never closed\n5,ok\n',
        {"triples": [["a:{a}", "a:p", {"column": "b"}]]},
    )
    assert [event.quads[0].object.value for event in events] == ['x "y",\nz', '5" wide', "ok"]
    assert [(reject.line, reject.reason.split(":")[0]) for reject in rejects] == [
        (5, "the row has 1 cells, the header 2"),
        (6, "broken quotes"),
    ]


def test_csv_delimiter_columns_and_graph():
    mapping = {
        "delimiter": "|",
        "columns": ["user", "place"],
        "graph": "a:g/{user}",
        "triples": [["{+user}", "a:at", {"column": "place"}]],
    }
    events, _ = read("http://u/1|56.5,10.0\n", mapping)
    assert str(events[0].quads[0]) == '<http://u/1> <a:at> "56.5,10.0" <a:g/http%3A%2F%2Fu%2F1>'


def test_an_iri_column_that_holds_none_spoils_the_row():
    _, rejects = read("u\nno iri\n", {"triples": [["{+u}", "a:p", "a:o"]]})
    assert "'no iri' is not an IRI" in rejects[0].reason


def test_json_paths_and_values():
    mapping = {"triples": [["a:s", "a:p", {"column": name}] for name in ("a.b", "c", "d", "e", "f.g")]}
    events, rejects = read(
        '{"a": {"b": 7.40}, "c": true, "d": null, "e": 1e999, "f.g": "x"}\n{"c": [1]}\n', mapping, "ndjson"
    )
    assert [quad.object.value for quad in events[0].quads] == ["7.40", "true", "1e999", "x"]
    assert rejects[0].reason == "'c' holds an array, not a value"


def test_a_column_that_the_header_lacks_is_a_usage_error():
    with pytest.raises(UsageError, match="the mapping uses column 'b', but the header has: a, c"):
        read("a,c\n1,2\n", {"triples": [["a:{a}", "a:p", {"column": "b"}]]})


TRIPLE = ["a:s", "a:p", "a:o"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "makes no triples"),
        ({"tripels": []}, "unknown 'tripels'"),
        ({"triples": "x"}, "expected a list"),
        ({"triples": [["a:s", "a:p"]]}, "triple 1: expected"),
        ({"triples": [TRIPLE, ["ex{x", "a:p", "a:o"]]}, "triple 2, subject: lone '{'"),
        ({"triples": [["nothing{x}", "a:p", "a:o"]]}, "triple 1, subject: 'nothing{x}' makes no IRI"),
        ({"triples": [["a:s", "p", "a:o"]]}, "triple 1, predicate: 'p' is neither"),
        ({"triples": [["a:s", "a:p", 5]]}, "triple 1, object: expected an IRI template"),
        ({"triples": [["a:s", "a:p", {"colum": "x"}]]}, "triple 1, object: unknown 'colum'"),
        ({"triples": [["a:s", "a:p", {"column": "x", "value": "y"}]]}, "expected one of column"),
        ({"triples": [["a:s", "a:p", {"column": "x", "lang": "en", "datatype": "xsd:int"}]]}, "not both"),
        ({"triples": [["a:s", "a:p", {"column": "x", "lang": "not a tag"}]]}, "triple 1, object"),
        ({"triples": [["a:s", "a:p", {"value": "x", "datatype": "xsd:int"}]]}, "is not an xsd:int"),
        ({"triples": [["a:s", "a:p", {"column": "x", "format": "iso"}]]}, "datatype xsd:dateTime"),
        ({"triples": [["_:", "a:p", "a:o"]]}, "a blank node needs a name"),
        ({"types": ["a:T"]}, "types: expected"),
        ({"triples": [TRIPLE], "time": {"format": "iso"}}, "which column"),
        ({"triples": [TRIPLE], "time": {"column": "t", "format": "rfc"}}, "format 'rfc'"),
        ({"triples": [TRIPLE], "time": {"column": "t", "format": "%Q"}}, "cannot be used"),
        ({"triples": [TRIPLE], "time": {"column": "t", "timezone": "Mars/Base"}}, "unknown time zone"),
        ({"triples": [TRIPLE], "delimiter": "||"}, "one \\(ASCII\\) character"),
        ({"triples": [["a:{x}", "a:p", "a:o"]], "columns": ["y"]}, "column 'x'"),
        ({"triples": [TRIPLE], "prefixes": ["ex"]}, "prefixes: expected"),
        ({"triples": [TRIPLE], "missing": "NA"}, "missing: expected a list"),
    ],
)
def test_a_bad_mapping_is_refused_before_anything_is_read(mapping, message):
    with pytest.raises(UsageError, match=message):
        read_events(b"", format="csv", mapping=mapping, on_reject=pytest.fail)


CITY = {
    "AarhusTrafficData158505.csv": TRAFFIC,
    "AarhusTrafficData182955.csv": TRAFFIC,
    "AarhusParkingData.csv": {
        "time": {"column": "updatetime"},
        "triples": [
            [
                "http://ex/{garagecode}",
                "http://ex/count",
                {"column": "vehiclecount", "datatype": "xsd:integer"},
            ]
        ],
    },
    "AarhusPollutionData187986.csv": {
        "time": {"column": "timestamp", "format": "%Y-%m-%d %H:%M:%S"},
        "triples": [["_:o", "http://ex/ozone", {"column": "ozone", "datatype": "xsd:integer"}]],
    },
    "AarhusWeatherData0.csv": {
        "time": "TIMESTAMP",
        "triples": [["_:o", "http://ex/temperature", {"column": "tempm", "datatype": "xsd:decimal"}]],
    },
    "UserLocationService.csv": {
        "delimiter": "|",
        "columns": ["user", "place"],
        "triples": [["{+user}", "http://ex/at", {"column": "place"}]],
    },
}


@pytest.mark.data
@pytest.mark.skipif(not DATA.is_dir(), reason=f"no CityBench data at {DATA}")
@pytest.mark.parametrize("name", list(CITY))
def test_citybench(name):
    rejects: list[Reject] = []
    events = list(read_events(DATA / name, mapping=CITY[name], on_reject=rejects.append))
    assert len(events) >= 288
    assert not [reject for reject in rejects if "nothing to say" not in reject.reason]
    if "time" in CITY[name]:
        assert all(1_400_000_000_000 < (event.time or 0) < 1_500_000_000_000 for event in events)
