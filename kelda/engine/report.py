"""When a query reports, and which difference it sends: the defaults of each dialect."""

from __future__ import annotations

from kelda.lang.algebra import Dialect, Output, Query, Report, TimeWindow, When

__all__ = ["Report", "When", "output_of", "periods_of", "report_of"]


def report_of(query: Query) -> Report:
    """The policy that the query's dialect and text ask for."""
    if query.every is not None:
        return Report(When.PERIODIC, non_empty=True, every=query.every)
    if query.report is not None:
        return query.report
    if query.dialect in (Dialect.CSPARQL, Dialect.RSPQL):
        return Report(When.WINDOW_CLOSE, non_empty=True)
    return Report(When.CONTENT_CHANGE)


def periods_of(query: Query, report: Report) -> frozenset[int]:
    """The periods at which the query reports, whatever comes; none if that depends on what comes."""
    if report.every is not None:
        return frozenset([report.every])
    slides = {
        window.window.slide if isinstance(window.window, TimeWindow) else None for window in query.windows
    }
    found = frozenset(slide for slide in slides if isinstance(slide, int))
    return found if report.when is When.WINDOW_CLOSE and len(found) == len(slides) else frozenset()


def output_of(query: Query) -> Output:
    """What the query says, else CHANGES without windows, ISTREAM for CQELS-QL and RSTREAM for the others."""
    if query.output is not None:
        return query.output
    if not query.windows:
        return Output.CHANGES
    return Output.ISTREAM if query.dialect is Dialect.CQELS else Output.RSTREAM
