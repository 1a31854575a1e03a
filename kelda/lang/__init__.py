"""Query text of four dialects -> one algebra (`kelda.lang.algebra`).

`parse` for a query that is asked once, `prepare` for one that comes in many variants; `parse_update` for
SPARQL 1.1 Update (`kelda.lang.update`).
"""

from __future__ import annotations

from collections.abc import Container, Mapping

from kelda.errors import QueryError
from kelda.lang.algebra import Dialect, Query
from kelda.lang.deep import with_room
from kelda.lang.nesting import depth
from kelda.lang.params import Prepared, bound, term_from_text
from kelda.lang.parser import Language, decode, tree
from kelda.lang.translate import Translator
from kelda.lang.translate_update import UpdateTranslator
from kelda.lang.update import Update

__all__ = ["Prepared", "parse", "parse_update", "prepare", "term_from_text"]


def parse(
    text: str,
    *,
    dialect: str | Dialect | None = None,
    base: str | None = None,
    params: Mapping[str, object] | None = None,
    allow_service: bool = False,
) -> Query:
    """The algebra of a query; a `QueryError` says where it goes wrong.

    `dialect` is read from the text unless said. `base` is what relative IRIs stand against until
    the text says BASE. `params` gives values for `$name`; other `$x` are variables, as `?x`.
    """
    if params is None:
        return _translate(text, dialect, base, None, allow_service)[0]
    query, names = _translate(text, dialect, base, params, allow_service)
    return Prepared(query, names).bind(**params)


def prepare(
    text: str,
    dialect: str | Dialect | None = None,
    *,
    base: str | None = None,
    allow_service: bool = False,
) -> Prepared:
    """A query in which every `$name` is a parameter: `prepare(text).bind(name=value)`."""
    query, names = _translate(text, dialect, base, _Everything(), allow_service)
    written = dialect.value if isinstance(dialect, Dialect) else dialect
    return Prepared(query, names, text, written, base)


def parse_update(text: str, *, base: str | None = None, params: Mapping[str, object] | None = None) -> Update:
    """The operations of an update; a `QueryError` says where it goes wrong. See `parse` for the rest."""
    text = decode(text)
    read = tree(text, Language.UPDATE)
    levels = depth(read, text)
    translator = UpdateTranslator(text, base=base, params=params)

    def translate() -> Update:
        update = translator.update(read, levels)
        return update if params is None else bound(update, translator.parameters, params)

    return with_room(levels, translate)


class _Everything(Container[str]):
    """The container that has everything."""

    def __contains__(self, item: object) -> bool:
        return True


def _dialect(name: str) -> Dialect:
    """The dialect that a person calls `name`: csparql, C-SPARQL, cqels, CQELS-QL, …"""
    plain = name.lower().replace("-", "")
    try:
        return Dialect("cqels" if plain == "cqelsql" else plain)
    except ValueError:
        names = ", ".join(d.value for d in Dialect)
        raise QueryError(f"there is no dialect {name!r}; there are {names}") from None


def _translate(
    text: str,
    dialect: str | Dialect | None,
    base: str | None,
    params: Container[str] | None,
    allow_service: bool,
) -> tuple[Query, tuple[str, ...]]:
    if isinstance(dialect, str):
        dialect = _dialect(dialect)
    text = decode(text)
    read = tree(text)
    levels = depth(read, text)
    translator = Translator(text, base=base, params=params, dialect=dialect, allow_service=allow_service)
    query = with_room(levels, lambda: translator.query(read, levels))
    return query, tuple(translator.parameters)
