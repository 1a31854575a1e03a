"""The one algebra that every dialect is translated to: small immutable nodes.

A *pattern* maps the contents of the stored graphs and the windows at an instant to a bag of
solutions. `Query` adds what turns that bag into a stream of answers: the windows, when they
report, and which difference is sent.

Terms are pyoxigraph's (`NamedNode`, `Literal`, `Triple`) and `Var`. Blank nodes of the query
text have become variables whose names no user can write (they start with a dot), and `SELECT *`
has become the list of variables it stands for, so nothing below this layer needs to know of either.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from pyoxigraph import Literal, NamedNode, Triple


@dataclass(frozen=True, slots=True, order=True)
class Var:
    """A query variable, ordered by name. `name` has no `?`; one that starts with '.' was a blank node."""

    name: str


@dataclass(frozen=True, slots=True)
class Param:
    """`$name` of a prepared query, until a value is given; gone from an executable query."""

    name: str


Term = NamedNode | Literal | Triple
TermOrVar = NamedNode | Literal | Triple | Var | Param


# ---------------------------------------------------------------------------- expressions


class Expr:
    """Base of expressions."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Const(Expr):
    """A constant term."""

    term: Term


@dataclass(frozen=True, slots=True)
class VarRef(Expr):
    """The value of a variable."""

    var: Var | Param


@dataclass(frozen=True, slots=True)
class Call(Expr):
    """An operator or a built-in, by its SPARQL name in upper case: '||' '&&' '=' '!=' '<' '>'
    '<=' '>=' '+' '-' '*' '/' '!' 'U+' 'U-' 'IN' 'NOT IN' 'BOUND' 'IF' 'COALESCE' 'REGEX' …"""

    op: str
    args: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class FunctionCall(Expr):
    """A function named by IRI: casts such as xsd:integer(…) and extension functions."""

    function: NamedNode
    args: tuple[Expr, ...]
    distinct: bool = False


@dataclass(frozen=True, slots=True)
class Exists(Expr):
    """EXISTS {pattern}; NOT EXISTS is Call('!', (Exists(p),))."""

    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Aggregate:
    """COUNT SUM AVG MIN MAX SAMPLE GROUP_CONCAT; `arg` None is COUNT(*)."""

    op: str
    arg: Expr | None
    distinct: bool = False
    separator: str | None = None


# ---------------------------------------------------------------------------- property paths


class Path:
    """Base of property paths; a plain predicate is a `Link`."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Link(Path):
    """One predicate."""

    iri: NamedNode


@dataclass(frozen=True, slots=True)
class Inverse(Path):
    """^path"""

    path: Path


@dataclass(frozen=True, slots=True)
class Sequence(Path):
    """a / b / …"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Alternative(Path):
    """a | b | …"""

    parts: tuple[Path, ...]


@dataclass(frozen=True, slots=True)
class Repeat(Path):
    """path?, path*, path+: (at_least, unbounded) is (0, False), (0, True), (1, True)."""

    path: Path
    at_least: int
    unbounded: bool


@dataclass(frozen=True, slots=True)
class NegatedSet(Path):
    """!(a | ^b): forward and inverse predicates that are excluded."""

    forward: tuple[NamedNode, ...]
    inverse: tuple[NamedNode, ...]


# ---------------------------------------------------------------------------- patterns


class Pattern:
    """Base of patterns."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class TriplePattern:
    """One triple pattern (not a Pattern by itself; see `Triples`)."""

    s: TermOrVar
    p: TermOrVar
    o: TermOrVar


@dataclass(frozen=True, slots=True)
class QuadPattern(TriplePattern):
    """A triple of a CONSTRUCT template that stands in GRAPH."""

    graph: NamedNode | Var | Param


@dataclass(frozen=True, slots=True)
class Triples(Pattern):
    """A basic graph pattern. No patterns at all: the one empty solution."""

    patterns: tuple[TriplePattern, ...] = ()


@dataclass(frozen=True, slots=True)
class PathPattern(Pattern):
    """s path o, for a path that is not a single predicate."""

    s: TermOrVar
    path: Path
    o: TermOrVar


@dataclass(frozen=True, slots=True)
class Join(Pattern):
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class LeftJoin(Pattern):
    """OPTIONAL; `condition` is the filter at the top of the optional group, in the scope of both."""

    left: Pattern
    right: Pattern
    condition: Expr | None = None


@dataclass(frozen=True, slots=True)
class Union(Pattern):
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Minus(Pattern):
    left: Pattern
    right: Pattern


@dataclass(frozen=True, slots=True)
class Filter(Pattern):
    condition: Expr
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Extend(Pattern):
    """BIND(expr AS var), and `(expr AS ?v)` of SELECT and GROUP BY."""

    pattern: Pattern
    var: Var
    expr: Expr


@dataclass(frozen=True, slots=True)
class Values(Pattern):
    """Inline data; None is UNDEF."""

    vars: tuple[Var, ...]
    rows: tuple[tuple[Term | Param | None, ...], ...]


@dataclass(frozen=True, slots=True)
class InGraph(Pattern):
    """GRAPH name {pattern}: stored named graphs only, never windows."""

    name: NamedNode | Var | Param
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class InWindow(Pattern):
    """The pattern over the contents of window `window` (a `WindowDef.name` of the query).

    Where the window's stream is a Var (`STREAM ?var`), the solutions also bind that variable."""

    window: str
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Service(Pattern):
    """SERVICE; refused at registration unless the caller allows it."""

    name: NamedNode | Var
    pattern: Pattern
    silent: bool = False


@dataclass(frozen=True, slots=True)
class Group(Pattern):
    """GROUP BY `keys` with `aggregates` (fresh variable, aggregate). HAVING is a Filter above."""

    pattern: Pattern
    keys: tuple[Var, ...]
    aggregates: tuple[tuple[Var, Aggregate], ...]


@dataclass(frozen=True, slots=True)
class OrderBy(Pattern):
    """`keys` are (expression, descending)."""

    pattern: Pattern
    keys: tuple[tuple[Expr, bool], ...]


@dataclass(frozen=True, slots=True)
class Project(Pattern):
    pattern: Pattern
    vars: tuple[Var, ...]


@dataclass(frozen=True, slots=True)
class Distinct(Pattern):
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Reduced(Pattern):
    pattern: Pattern


@dataclass(frozen=True, slots=True)
class Slice(Pattern):
    pattern: Pattern
    offset: int = 0
    limit: int | None = None


# ---------------------------------------------------------------------------- windows


class Window:
    """Base of window specifications. All durations are whole milliseconds.

    What is in a window at instant t (see docs/semantics.md):
    """

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class NowWindow(Window):
    """Elements of exactly the instant t."""


@dataclass(frozen=True, slots=True)
class AllWindow(Window):
    """Every element up to t."""


@dataclass(frozen=True, slots=True)
class TimeWindow(Window):
    """Elements in (b - until - range, b - until], where b is t, or with `slide` the last
    boundary t0 + k*slide that is <= t. `until` > 0 makes a past window (NOW-a TO NOW-b:
    range = a - b, until = b). Tumbling is slide == range.
    `time_predicate`: the element's time is the value of this predicate in its event."""

    range: int | Param
    slide: int | Param | None = None
    until: int = 0
    time_predicate: NamedNode | None = None


class CountUnit(Enum):
    """What a count window counts."""

    TRIPLES = "triples"
    EVENTS = "events"


@dataclass(frozen=True, slots=True)
class CountWindow(Window):
    """The last `count` triples or events, moving on whenever `step` more have come."""

    count: int | Param
    step: int | Param = 1
    unit: CountUnit = CountUnit.TRIPLES


@dataclass(frozen=True, slots=True)
class SessionWindow(Window):
    """The running session: it ends when no element has come for `gap`."""

    gap: int | Param


@dataclass(frozen=True, slots=True)
class WindowDef:
    """A named window of a query on one stream; a `stream` that is a Var stands for every stream
    (CQELS-QL `STREAM ?var`) and is bound to the stream's IRI."""

    name: str
    stream: NamedNode | Var | Param
    window: Window


# ---------------------------------------------------------------------------- queries


class Dialect(Enum):
    SPARQL = "sparql"
    CQELS = "cqels"
    CSPARQL = "csparql"
    RSPQL = "rspql"


class Form(Enum):
    SELECT = "select"
    CONSTRUCT = "construct"
    ASK = "ask"
    DESCRIBE = "describe"


class Output(Enum):
    """Relation-to-stream: the whole answer, what is new, what is gone, or both differences."""

    RSTREAM = "rstream"
    ISTREAM = "istream"
    DSTREAM = "dstream"
    CHANGES = "changes"


class When(Enum):
    """The report policies of the SECRET model."""

    CONTENT_CHANGE = "content-change"
    WINDOW_CLOSE = "window-close"
    PERIODIC = "periodic"


@dataclass(frozen=True, slots=True)
class Report:
    """`non_empty`: no report while all windows are empty. `every`: the period, in ms."""

    when: When
    non_empty: bool = False
    every: int | None = None


@dataclass(frozen=True, slots=True)
class Dataset:
    """FROM / FROM NAMED over stored graphs. None: not said, so the engine's whole dataset.

    `windows` are the windows whose contents are part of the default graph (C-SPARQL's
    `FROM STREAM`), by name."""

    default: tuple[NamedNode, ...] | None = None
    named: tuple[NamedNode, ...] | None = None
    windows: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Query:
    """A parsed query of any dialect.

    `pattern` ends in its Project/Distinct/Slice for SELECT; for CONSTRUCT `template` holds the
    triples to build (blank nodes of the template are `Var` with a dot name that the pattern does
    not bind: a fresh blank node per solution); for DESCRIBE `describe` the terms.
    `every` is C-SPARQL's COMPUTED EVERY (ms). `name` is what REGISTER says.
    `stream_out` is the IRI after REGISTER RSTREAM <o> / REGISTER STREAM.
    `report` is when it reports, if a window says so (else the dialect does).
    `depth` is how deep the text nests, at least as deep as the pattern; see `kelda.lang.deep`.
    """

    form: Form
    pattern: Pattern
    dialect: Dialect = Dialect.SPARQL
    windows: tuple[WindowDef, ...] = ()
    dataset: Dataset = field(default_factory=Dataset)
    template: tuple[TriplePattern, ...] = ()
    describe: tuple[NamedNode | Var, ...] = ()
    output: Output | None = None
    every: int | None = None
    name: str | None = None
    stream_out: NamedNode | None = None
    base: str | None = None
    prefixes: tuple[tuple[str, str], ...] = ()
    report: Report | None = None
    depth: int = field(default=0, compare=False)
