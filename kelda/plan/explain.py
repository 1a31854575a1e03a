"""How a query will be run, for a person to read."""

from __future__ import annotations

from pyoxigraph import NamedNode

from kelda.lang import algebra as A
from kelda.lang.deep import roomy
from kelda.lang.to_sparql import WINDOW_PREFIX, WindowGraph, to_sparql
from kelda.lang.walk import parts


@roomy()
def explain(query: A.Query) -> str:
    """The windows, the tree of operators, and what evaluates them."""
    lines = [f"{query.dialect.value} {query.form.value}" + (f" {query.name}" if query.name else "")]
    for window in query.windows:
        lines.append(f"window {window.name} on {show(window.stream)}: {_show_window(window.window)}")
    lines += ["", *_tree(query.pattern, 0), ""]
    if not query.windows:
        lines.append("evaluated by: the store, once (a query without windows)")
    graphs = {
        w.name: (WindowGraph(NamedNode("urn:kelda:stream"), f"{WINDOW_PREFIX}{w.name}"),)
        for w in query.windows
    }
    lines += ["as SPARQL over window graphs:", "  " + to_sparql(query, windows=graphs, plain=True)]
    return "\n".join(lines)


def _tree(node: A.Pattern, depth: int) -> list[str]:
    pad = "  " * depth
    match node:
        case A.Triples(triples):
            return [pad + f"triple {show(t.s)} {show(t.p)} {show(t.o)}" for t in triples] or [pad + "unit"]
        case A.PathPattern(s, path, o):
            return [pad + f"path {show(s)} {path} {show(o)}"]
    below = [part for part in parts(node) if isinstance(part, A.Pattern)]
    detail = " ".join(show(p) for p in parts(node) if not isinstance(p, A.Pattern) and p not in (None, (), 0))
    lines = [f"{pad}{type(node).__name__} {detail}".rstrip()]
    for child in below:
        lines += _tree(child, depth + 1)
    return lines


def show(value: object) -> str:
    """A term, an expression or a part of one, for a person to read."""
    match value:
        case A.Var(name):
            return "?" + name
        case A.Param(name):
            return "$" + name
        case A.VarRef(var):
            return show(var)
        case A.Const(term):
            return str(term)
        case A.Call(op, args):
            return f"{op}({', '.join(show(a) for a in args)})"
        case A.FunctionCall(function, args):
            return f"{function}({', '.join(show(a) for a in args)})"
        case A.Aggregate(op, arg, distinct):
            return f"{op}({'distinct ' if distinct else ''}{'*' if arg is None else show(arg)})"
        case A.Exists(pattern):
            return "exists { " + "; ".join(line.strip() for line in _tree(pattern, 0)) + " }"
        case tuple():
            return "(" + " ".join(show(v) for v in value) + ")"
        case None:
            return "undef"
    return str(value)


def _show_window(window: A.Window) -> str:
    match window:
        case A.NowWindow():
            return "the present instant"
        case A.AllWindow():
            return "everything since registration"
        case A.TimeWindow(length, slide, until, predicate):
            text = f"the last {show(length)} ms"
            text += f" up to {until} ms ago" if until else ""
            text += "" if slide is None else f", moving by {show(slide)} ms"
            return text + ("" if predicate is None else f", by the time in {predicate}")
        case A.CountWindow(count, step, unit):
            return f"the last {show(count)} {unit.value}, moving by {show(step)}"
        case A.SessionWindow(gap):
            return f"sessions that end after {show(gap)} ms of silence"
    return str(window)
