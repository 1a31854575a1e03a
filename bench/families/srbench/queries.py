"""Questions about the weather: those of SRBench that the published comparisons run.

Their sentences are SRBench's; the texts are ours.
"""

from __future__ import annotations

from bench.families.base import BenchQuery
from bench.families.srbench.generator import OBSERVATIONS, OM_OWL, WEATHER, WGS84, XSD, place_of

LATITUDE, LONGITUDE = place_of(3)

PREFIXES = f"""PREFIX om-owl: <{OM_OWL}>
PREFIX weather: <{WEATHER}>
PREFIX wgs84: <{WGS84}>
PREFIX xsd: <{XSD}>
"""

SAME = "C-SPARQL and RSP-QL send all answers at each step, CQELS-QL those that are new."


def observed(what: str, value: str) -> str:
    """The patterns of an observation of that kind by `?sensor`."""
    name = f"?{value}Observation"
    return f"{name} a weather:{what}Observation ; om-owl:procedure ?sensor ; om-owl:result ?{value}Result ."


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


QUERIES = (
    _query(
        "Q1",
        "Get the rainfall observed once in an hour.",
        "DISTINCT ?sensor ?value ?uom",
        "1h 1h",
        observed("Rainfall", "rain") + "\n    ?rainResult om-owl:floatValue ?value ; om-owl:uom ?uom .",
    ),
    _query(
        "Q4",
        "Get the average wind speed at the stations where the air temperature is above 32 degrees in the "
        "last hour, every 10 minutes.",
        "?sensor (AVG(?wind) AS ?averageWind) (AVG(?temperature) AS ?averageTemperature)",
        "1h 10m",
        observed("Temperature", "temperature")
        + "\n    ?temperatureResult om-owl:floatValue ?temperature .\n    "
        + observed("WindSpeed", "wind")
        + "\n    ?windResult om-owl:floatValue ?wind .\n    FILTER(?temperature > 32)",
        tail="GROUP BY ?sensor",
    ),
    _query(
        "Q5",
        "Detect whether a station observes a blizzard: snow, cold and a strong wind for three hours.",
        "?sensor",
        "3h 10m",
        observed("Snowfall", "snow")
        + "\n    ?snowResult om-owl:floatValue ?snow .\n    "
        + observed("Temperature", "temperature")
        + "\n    ?temperatureResult om-owl:floatValue ?temperature .\n    "
        + observed("WindSpeed", "wind")
        + "\n    ?windResult om-owl:floatValue ?wind .\n    FILTER(?snow > 0)",
        tail="GROUP BY ?sensor HAVING (AVG(?temperature) < 0 && MIN(?wind) > 40)",
        construct="{ ?sensor om-owl:generatedObservation [ a weather:Blizzard ] }",
    ),
    _query(
        "Q8",
        "Get the daily minimal and maximal air temperature observed by the sensors at a given location.",
        "?sensor (MIN(?temperature) AS ?lowest) (MAX(?temperature) AS ?highest)",
        "1d 1h",
        observed("Temperature", "temperature") + "\n    ?temperatureResult om-owl:floatValue ?temperature .",
        stored=f'?sensor om-owl:processLocation ?point .\n  ?point wgs84:lat "{LATITUDE}"^^xsd:float ; '
        f'wgs84:long "{LONGITUDE}"^^xsd:float .',
        tail="GROUP BY ?sensor",
        notes="Told every hour for the day that ends then.",
    ),
    _query(
        "Q10",
        "Get the locations where a heavy snowfall has been observed in the last day.",
        "DISTINCT ?latitude ?longitude",
        "1d 1h",
        observed("Snowfall", "snow") + "\n    ?snowResult om-owl:floatValue ?snow . FILTER(?snow > 30)",
        stored="?sensor om-owl:processLocation ?point . ?point wgs84:lat ?latitude ; wgs84:long ?longitude .",
        notes="Told every hour for the day that ends then.",
    ),
)
