"""CSV and JSON in: what a mapping makes of a row, which rows it refuses, and which mappings are refused."""

from __future__ import annotations

import itertools
import json
import os
import random
from pathlib import Path

import pytest

from kelda.errors import UsageError
from kelda.rdf import framing
from kelda.rdf.event import Event, Reject
from kelda.rdf.framing import Chunk, Chunker, prepare_mapping, read_events
from tests.rdf import by_columns

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
    events, rejects = read("a,b\n,1\n2,3\n", {"triples": [["urn:{a}", "urn:p", {"column": "b"}]]})
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
        "triples": [
            ["urn:s", "a", "urn:T"],
            ["urn:s", "urn:p", {"column": "x", "datatype": f"xsd:{datatype}"}],
        ]
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
    events, rejects = read(
        f"t,x\n{value},1\n", {"time": time, "triples": [["urn:s", "urn:p", {"column": "x"}]]}
    )
    if expected is None:
        assert not events and "column 't'" in rejects[0].reason
    else:
        assert not rejects and events[0].time == expected


def test_without_a_time_column_the_triples_tell():
    mapping = {"triples": [["urn:s", "sosa:resultTime", {"column": "t"}]]}
    assert read("t\n1970-01-01T00:00:01Z\n", mapping)[0][0].time == 1000
    assert read("t\n5\n", mapping, time_predicate="http://www.w3.org/ns/sosa/resultTime")[0][0].time == 5


def test_csv_quotes_line_breaks_and_broken_rows():
    events, rejects = read(
        'a,b\n1,"x ""y"",\nz"\n2,5" wide\n3\n4,"never closed\n5,ok\n',
        {"triples": [["urn:{a}", "urn:p", {"column": "b"}]]},
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
        "graph": "urn:g/{user}",
        "triples": [["{+user}", "urn:at", {"column": "place"}]],
    }
    events, _ = read("http://u/1|56.5,10.0\n", mapping)
    assert str(events[0].quads[0]) == '<http://u/1> <urn:at> "56.5,10.0" <urn:g/http%3A%2F%2Fu%2F1>'


def test_an_iri_column_that_holds_none_spoils_the_row():
    _, rejects = read("u\nno iri\n", {"triples": [["{+u}", "urn:p", "urn:o"]]})
    assert "'no iri' is not an IRI" in rejects[0].reason


def test_json_paths_and_values():
    mapping = {"triples": [["urn:s", "urn:p", {"column": name}] for name in ("a.b", "c", "d", "e", "f.g")]}
    events, rejects = read(
        '{"a": {"b": 7.40}, "c": true, "d": null, "e": 1e999, "f.g": "x"}\n{"c": [1]}\n', mapping, "ndjson"
    )
    assert [quad.object.value for quad in events[0].quads] == ["7.40", "true", "1e999", "x"]
    assert not rejects and [quad.object.value for quad in events[1].quads] == ["1"]


def test_whole_iris_need_no_prefix():
    for iri in ("urn:x", "mailto:a@b", "http://ex/x", "<foo:x>", "ws://ex/x", "unheard-of://ex/x"):
        events, _ = read("{}", {"triples": [[iri, "urn:p", {"value": "x", "datatype": "<foo:t>"}]]}, "json")
        assert str(events[0].quads[0].subject) == f"<{iri.strip('<>')}>"


def objects(line: str, *triples) -> list[str]:
    """What the triples say of a line of JSON, as `subject object`."""
    events, rejects = read(line, {"triples": list(triples)}, "json")
    if rejects:
        return [rejects[0].reason]
    return [f"{q.subject.value.removeprefix('urn:')} {q.object.value}" for q in events[0].quads]


def test_an_array_makes_a_triple_for_each_of_its_values():
    tags = ["urn:{id}", "urn:p", {"column": "tags"}]
    assert objects('{"id": 1, "tags": ["a", "b", null, "", 7.0, "a"]}', tags) == [
        "1 a",
        "1 b",
        "1 7.0",
        "1 a",
    ]
    assert objects('{"id": 1, "tags": []}', tags) == ["nothing to say: no value in the columns id, tags"]
    # the same column twice is the same element; two columns are all combinations
    both = ["urn:{a}", "urn:p", {"template": "{a}{b}"}]
    assert objects('{"a": [1, 2], "b": "x"}', both) == ["1 1x", "2 2x"]
    assert objects('{"a": [1, 2], "b": [3, 4]}', both) == ["1 13", "1 14", "2 23", "2 24"]
    # what lies in the elements of one array stays together
    items = ["urn:{items.name}", "urn:p", {"column": "items.price"}]
    assert objects(
        '{"items": [{"name": "x", "price": 1}, {"name": "y", "price": [2, 3]}, {"name": "z"}]}', items
    ) == [
        "x 1",
        "y 2",
        "y 3",
    ]
    assert objects('{"id": 1, "tags": [["a"]]}', tags) == ["'tags' holds an array in an array"]
    assert objects('{"id": 1, "tags": [{}]}', tags) == ["'tags' holds an object, not a value"]
    many = json.dumps({"a": [1] * 400, "b": [2] * 400})
    assert "combinations" in objects(many, both)[0]


def test_a_column_that_the_header_lacks_is_a_usage_error():
    with pytest.raises(UsageError, match="the mapping uses column 'b', but the header has: a, c"):
        read("a,c\n1,2\n", {"triples": [["urn:{a}", "urn:p", {"column": "b"}]]})


TRIPLE = ["urn:s", "urn:p", "urn:o"]


@pytest.mark.parametrize(
    ("mapping", "message"),
    [
        ({}, "makes no triples"),
        ({"tripels": []}, "unknown 'tripels'"),
        ({"triples": "x"}, "expected a list"),
        ({"triples": [["urn:s", "urn:p"]]}, "triple 1: expected"),
        ({"triples": [TRIPLE, ["ex{x", "urn:p", "urn:o"]]}, "triple 2, subject: lone '{'"),
        ({"triples": [["nothing{x}", "urn:p", "urn:o"]]}, "triple 1, subject: 'nothing{x}' makes no IRI"),
        ({"triples": [["urn:s", "p", "urn:o"]]}, "triple 1, predicate: 'p' is neither"),
        ({"triples": [["urn:s", "urn:p", 5]]}, "triple 1, object: expected an IRI template"),
        ({"triples": [["urn:s", "urn:p", {"colum": "x"}]]}, "triple 1, object: unknown 'colum'"),
        ({"triples": [["urn:s", "urn:p", {"column": "x", "value": "y"}]]}, "expected one of column"),
        ({"triples": [["urn:s", "urn:p", {"column": "x", "lang": "en", "datatype": "xsd:int"}]]}, "not both"),
        ({"triples": [["urn:s", "urn:p", {"column": "x", "lang": "not a tag"}]]}, "triple 1, object"),
        ({"triples": [["urn:s", "urn:p", {"value": "x", "datatype": "xsd:int"}]]}, "is not an xsd:int"),
        ({"triples": [["urn:s", "urn:p", {"column": "x", "format": "iso"}]]}, "datatype xsd:dateTime"),
        ({"triples": [["_:", "urn:p", "urn:o"]]}, "a blank node needs a name"),
        ({"types": ["urn:T"]}, "types: expected"),
        ({"triples": [TRIPLE], "time": {"format": "iso"}}, "which column"),
        ({"triples": [TRIPLE], "time": {"column": "t", "format": "rfc"}}, "format 'rfc'"),
        ({"triples": [TRIPLE], "time": {"column": "t", "format": "%Q"}}, "cannot be used"),
        ({"triples": [TRIPLE], "time": {"column": "t", "timezone": "Mars/Base"}}, "unknown time zone"),
        ({"triples": [TRIPLE], "delimiter": "||"}, "one \\(ASCII\\) character"),
        ({"triples": [["urn:{x}", "urn:p", "urn:o"]], "columns": ["y"]}, "column 'x'"),
        ({"triples": [TRIPLE], "prefixes": ["ex"]}, "prefixes: expected"),
        (
            {"triples": [["foo:{x}", "urn:p", "urn:o"]]},
            "subject: the prefix 'foo:' of 'foo:{x}' is not declared",
        ),
        ({"triples": [["urn:s", "sosaa:p", "urn:o"]]}, "did you mean 'sosa:'"),
        ({"types": {"urn:s": "foo:T"}}, "the prefix 'foo:' of 'foo:T' is not declared"),
        ({"triples": [["urn:s", "urn:p", {"column": "x", "datatype": "foo:t"}]]}, "the prefix 'foo:'"),
        (
            {"triples": [["urn:s", "urn:p", {"column": "x", "datatype": "xsd:dubble"}]]},
            "there is no datatype 'xsd:dubble'; did you mean 'xsd:double'",
        ),
        (
            {"triples": [["urn:s", "urn:p", {"value": "x", "datatype": XSD + "intt"}]]},
            "did you mean 'xsd:int'",
        ),
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
    triples = by_columns.check("csv", (DATA / name).read_bytes(), mapping=CITY[name])
    assert triples == sum(len(event.quads) for event in events)


def test_a_mapping_file_is_read_once_until_it_changes(tmp_path):
    path = tmp_path / "mapping.yaml"
    path.write_text("triples: [['urn:{a}', 'urn:p', 'urn:o']]")
    first = prepare_mapping("csv", str(path))
    assert prepare_mapping("csv", path).mapping is first.mapping
    assert prepare_mapping("json", path).framing is not first.framing
    path.write_text("triples: [['urn:{a}', 'urn:p', 'urn:other']]")
    assert prepare_mapping("csv", path).mapping is not first.mapping
    path.unlink()
    with pytest.raises(UsageError, match="cannot read the mapping"):
        prepare_mapping("csv", path)


@pytest.mark.parametrize("seed", range(60))
def test_usual_records_are_cut_many_at_once(seed: int, monkeypatch: pytest.MonkeyPatch):
    draw = random.Random(seed)
    rows = [b"1,2\n", b"a,b\r\n", b'"x\ny","z"""\n', b"\n", b'q"1,2\n', b"  \n", b"1" * 50 + b",\n"]
    rows += [b'"', b"\r"]
    kinds = draw.sample(rows, draw.randrange(1, 5))
    data = b"a,b\n" + b"".join(draw.choice(kinds) for _ in range(draw.randrange(40)))
    places = sorted(draw.choice(range(len(data) + 1)) for _ in range(draw.randrange(4)))
    format, longest, most = draw.choice(["csv", "json"]), draw.choice([None, 30]), draw.choice([1, 3, 4096])
    mapping = {"triples": [["urn:{a}", "urn:p", {"column": "b"}]]}

    def chunks() -> list[Chunk]:
        chunker = Chunker(format, mapping=mapping, max_records=most, max_record=longest)
        parts = [data[i:j] for i, j in itertools.pairwise([0, *places, len(data)])]
        return [chunk for part in parts for chunk in chunker.feed(part)] + chunker.finish()

    slow = chunks()
    monkeypatch.setattr(framing, "MANY", 1)
    assert chunks() == slow
