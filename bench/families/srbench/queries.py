"""Questions about the weather: those of SRBench that the published comparisons run.

What they ask is SRBench's (www.w3.org/wiki/SRBench); how it is said is ours. C-SPARQL names its window (FROM
NAMED STREAM, GRAPH), so that the stream and the stored data are not one graph. What differs from the
published texts, and why:

- Temperatures are in Celsius here and wind in kilometres per hour, there in Fahrenheit and miles. So in Q5
  frost is below 0 and a strong wind above 64, for 32 and 40. Q4 has 32 as published, where no unit is named.
- Stations observe snow all the time here, mostly none. So Q5 asks for more than 0 and Q10, which is about
  heavy snow, for more than 30 cm; the published texts take any observation of snow.
- Q8 tells the station as well. Q8 and Q10 report every hour, for the day that ends then.
"""

from __future__ import annotations

from bench.families.base import BenchQuery
from bench.families.srbench.generator import OBSERVATIONS, OM_OWL, WEATHER, WGS84, XSD, place_of

LATITUDE, LONGITUDE, ALTITUDE = place_of(3)

PREFIXES = f"""PREFIX om-owl: <{OM_OWL}>
PREFIX weather: <{WEATHER}>
PREFIX wgs84: <{WGS84}>
PREFIX xsd: <{XSD}>
"""

SAME = "C-SPARQL and RSP-QL send all answers at each step, CQELS-QL those that are new."


def observed(what: str, value: str) -> str:
    """The patterns of a value of that kind, observed by `?sensor`."""
    return (
        f"?{value}Seen a weather:{what}Observation ; om-owl:procedure ?sensor ; "
        f"om-owl:result ?{value}Data .\n    ?{value}Data om-owl:floatValue ?{value} ."
    )


def _query(
    name: str,
    description: str,
    select: str,
    window: str,
    patterns: str,
    stored: str = "",
    tail: str = "",
    construct: str = "",
    notes: str = "",
) -> BenchQuery:
    """One window, its patterns and those over stored data, as each dialect says it."""
    span, step = window.split()

    def text(opening: str, dataset: str, window: str) -> str:
        group = f"WHERE {{\n  {window} {{\n    {patterns}\n  }}\n  {stored}\n}}\n{tail}"
        if construct:
            return f"{opening}CONSTRUCT {construct}\n{dataset}WHERE {{ {{ SELECT {select}\n{group} }} }}"
        return f"{opening}SELECT {select}\n{dataset}{group}"

    return BenchQuery(
        name,
        description,
        {
            "cqels": text(PREFIXES, "", f"STREAM <{OBSERVATIONS}> [RANGE {span} SLIDE {step}]"),
            "csparql": text(
                f"REGISTER QUERY {name} AS\n{PREFIXES}",
                f"FROM NAMED STREAM <{OBSERVATIONS}> [RANGE {span} STEP {step}]\n",
                f"GRAPH <{OBSERVATIONS}>",
            ),
            "rspql": text(
                f"{PREFIXES}REGISTER RSTREAM <urn:{name}> AS\n",
                f"FROM NAMED WINDOW <urn:w> ON <{OBSERVATIONS}> [RANGE {span} STEP {step}]\n",
                "WINDOW <urn:w>",
            ),
        },
        streams=(OBSERVATIONS,),
        stored=bool(stored),
        notes=(notes + " " + SAME).strip(),
    )


HOT_AND_WINDY = f"""{observed("Temperature", "temperature")}
    {observed("WindSpeed", "wind")}
    FILTER(?temperature > 32)"""
SNOW_FROST_AND_WIND = f"""{observed("Snowfall", "snow")}
    {observed("Temperature", "temperature")}
    {observed("WindSpeed", "wind")}
    FILTER(?snow > 0)"""

QUERIES = (
    _query(
        "Q1",
        "Once an hour, how much rain each station has measured.",
        "DISTINCT ?sensor ?rain ?unit",
        "1h 1h",
        observed("Rainfall", "rain") + " ?rainData om-owl:uom ?unit .",
    ),
    _query(
        "Q4",
        "Every 10 minutes, the mean wind of the last hour at stations that measured more than 32 degrees.",
        "?sensor (AVG(?wind) AS ?meanWind) (AVG(?temperature) AS ?meanTemperature)",
        "1h 10m",
        HOT_AND_WINDY,
        tail="GROUP BY ?sensor",
    ),
    _query(
        "Q5",
        "Stations in a blizzard: three hours of snow, frost and a strong wind.",
        "?sensor",
        "3h 10m",
        SNOW_FROST_AND_WIND,
        tail="GROUP BY ?sensor HAVING (AVG(?temperature) < 0 && MIN(?wind) > 64)",
        construct="{ ?sensor om-owl:generatedObservation [ a weather:Blizzard ] }",
    ),
    _query(
        "Q8",
        "How cold and how warm it was in the last day where one station stands.",
        "?sensor (MIN(?temperature) AS ?lowest) (MAX(?temperature) AS ?highest)",
        "1d 1h",
        observed("Temperature", "temperature"),
        stored=f'?sensor om-owl:processLocation ?point .\n  ?point wgs84:lat "{LATITUDE}"^^xsd:float ; '
        f'wgs84:long "{LONGITUDE}"^^xsd:float ; wgs84:alt "{ALTITUDE}"^^xsd:float .',
        tail="GROUP BY ?sensor",
        notes="Told every hour for the day that ends then.",
    ),
    _query(
        "Q10",
        "Where much snow has fallen within a day.",
        "DISTINCT ?latitude ?longitude ?altitude",
        "1d 1h",
        observed("Snowfall", "snow") + " FILTER(?snow > 30)",
        stored="?sensor om-owl:processLocation ?point . ?point wgs84:lat ?latitude ; wgs84:long ?longitude ; "
        "wgs84:alt ?altitude .",
        notes="Told every hour for the day that ends then.",
    ),
)
