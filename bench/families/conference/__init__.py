"""The conference scenario of the CQELS paper: RFID sightings, a floor plan, authors and their papers."""

from bench.families.base import Family
from bench.families.conference.generator import RFID, stored, stream
from bench.families.conference.queries import QUERIES

FAMILY = Family(
    name="conference",
    description="people seen in the rooms of a conference, joined with the floor plan and their papers",
    streams=(RFID,),
    stream=stream,
    stored=stored,
    queries=QUERIES,
    defaults={"rate": 100.0, "scale": 1, "people": 1000},
    source="Le-Phuoc, Dao-Tran, Parreira, Hauswirth: A Native and Adaptive Approach for Unified Processing "
    "of Linked Streams and Linked Data, ISWC 2011, sections 4 and 5",
)
