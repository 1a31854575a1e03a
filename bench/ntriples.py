"""How fast N-Triples text becomes columns of ids, on one core, in CPU time.

    python bench/ntriples.py [lines]

Generated sensor readings (IRIs, doubles, dateTimes, integers, strings, language tags), read with an empty
dictionary (most subjects are new terms) and again with all terms known; then text that only the slow lane
can read, and the dictionary alone.
"""

from __future__ import annotations

import sys
from time import perf_counter, process_time

from kelda.rdf.dictionary import Dictionary
from kelda.rdf.ntriples import Columns, read

_XSD = "http://www.w3.org/2001/XMLSchema#"


def sensor_readings(lines: int, timed: bool = False) -> bytes:
    """N-Triples in which one line in five has a subject that was not seen before it."""
    rows = []
    for i in range(lines // 5 + 1):
        observation = f"<http://example.org/city/observation/{i}>"
        stamp = f"{1_600_000_000_000 + 10 * i}\t" if timed else ""
        second, minute, hour = i % 60, i // 60 % 60, i // 3600 % 24
        for predicate, value in (
            ("http://www.w3.org/1999/02/22-rdf-syntax-ns#type", "<http://www.w3.org/ns/sosa/Observation>"),
            ("http://www.w3.org/ns/sosa/madeBySensor", f"<http://example.org/city/sensor/{i * 7919 % 5000}>"),
            ("http://www.w3.org/ns/sosa/hasSimpleResult", f'"{i % 4000 / 100}"^^<{_XSD}double>'),
            (
                "http://www.w3.org/ns/sosa/resultTime",
                f'"2024-05-01T{hour:02}:{minute:02}:{second:02}Z"^^<{_XSD}dateTime>',
            ),
            ("http://www.w3.org/2000/01/rdf-schema#label", f'"Reading of sensor {i * 7919 % 5000}"@en'),
        ):
            rows.append(f"{stamp}{observation} <{predicate}> {value} .\n")
    return "".join(rows[:lines]).encode()


def report(name: str, text: bytes, dictionary: Dictionary, **options: bool) -> Columns:
    start = process_time()
    columns = read(text, dictionary, **options)
    seconds = process_time() - start
    rate, size = len(columns) / seconds / 1e6, len(text) / seconds / 1e6
    print(f"{name:<34}{rate:8.2f} M triples/s {size:8.0f} MB/s   {len(dictionary):>9,} terms")
    return columns


def main() -> None:
    lines = int(sys.argv[1]) if len(sys.argv) > 1 else 1_000_000
    start = perf_counter()
    read(sensor_readings(10).replace(b"R", b"\\u0052"), Dictionary())
    print(f"first call (compiles, or loads the cache): {perf_counter() - start:.1f} s")
    text = sensor_readings(lines)
    dictionary = Dictionary()
    report("all terms new to the dictionary", text, dictionary)
    for _ in range(3):
        report("all terms known", text, dictionary)
    report("with a time on each line", sensor_readings(lines, timed=True), dictionary, timed=True)
    part = sensor_readings(lines // 20)
    report("few terms (fits the cache)", part, small := Dictionary())
    report("few terms, known", part, small)
    report("slow lane (every label escaped)", part.replace(b"Reading", b"Read\\u0069ng"), Dictionary())

    entries = dictionary.entries()
    other = Dictionary()
    other.add_batch([1], b"<a:b>", [0], [5])
    for name in ("add_entries, all new", "add_entries, all known"):
        start = process_time()
        other.add_entries(entries)
        print(f"{name:<34}{len(entries.ids) / (process_time() - start) / 1e6:8.2f} M terms/s")
    start = process_time()
    dictionary.terms(entries.ids[:100_000])
    print(f"{'terms':<34}{100_000 / (process_time() - start) / 1e6:8.2f} M terms/s")
    memory, text_size = (size / len(dictionary) for size in (dictionary.nbytes, entries.texts.nbytes))
    print(f"dictionary: {memory:.0f} bytes a term, {text_size:.0f} of them text")


if __name__ == "__main__":
    main()
