"""`messages`: RDF Messages, one message = one atomic event.

Turtle, TriG, N-Triples or N-Quads in which `MESSAGE` (or `@message .`) ends a message; normally
announced by `VERSION "1.2-messages"`. Prefixes and the base carry over from message to message,
blank nodes do not: they belong to their message and are renamed by its number. An empty message
between two delimiters is an event without quads; nothing behind the last delimiter is no message.
A broken message is rejected whole, and reading goes on behind the next delimiter; the prefixes it
declared still hold.

Format as drafted by the W3C RDF Stream Processing community group:
https://w3c-cg.github.io/rsp/spec/messages
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

from pyoxigraph import NamedNode, Quad, RdfFormat, parse

from kelda.rdf.event import Event
from kelda.rdf.framings.base import (
    MAX_RECORD,
    Chunk,
    Cut,
    Framing,
    Reading,
    RecordError,
    no_mapping,
    parsed,
    reason_of,
)
from kelda.rdf.framings.blanks import scope_of, scoped
from kelda.rdf.framings.eventtime import event_time

# The tokens that matter for finding delimiters and directives. Strings take their language tag
# with them, so that "…"@message is no delimiter. A bare MESSAGE is legal nowhere else.
_CHAR = rb"""(?: [^\s;,()\[\]{}|~\#<>"'.\\]+ | \\\S )"""
WORD = 1 << 16  # bytes that a word may have: a longer one is none
STROKE = 1 << 16  # bytes of a message that are passed over at once
_TOKEN = re.compile(
    rb"""
      (?P<space> [\s;,()\[\]{}|~]+ | \#[^\r\n]* )
    | (?P<iri> <[^\x00-\x20<>"{}|^`]*> )
    | (?P<string>
        (?: "{3} [^"\\]* (?: (?: \\. | "(?!"") ) [^"\\]* )* "{3}
          | '{3} [^'\\]* (?: (?: \\. | '(?!'') ) [^'\\]* )* '{3}
          | " (?!"") [^"\\\r\n]* (?: \\[^\r\n] [^"\\\r\n]* )* "
          | ' (?!'') [^'\\\r\n]* (?: \\[^\r\n] [^'\\\r\n]* )* '
        ) (?: @ [A-Za-z]+ (?: -+ [A-Za-z0-9]+ )* )? )
    | (?P<dot> \.+ )
    | (?P<junk> . )
    """,
    re.DOTALL | re.VERBOSE,
)
_WORD = re.compile(rb"(?P<word> CHAR (?: CHAR | \.+ (?= CHAR ) )* )".replace(b"CHAR", _CHAR), re.VERBOSE)
# Most of a message at one stroke: names, IRIs and simple strings, each closed by a separator, so
# that nothing in it can change with the bytes that follow.
_PLAIN = re.compile(
    rb"""
    (?: (?: (?! @ | (?i: message | prefix | base | version ) ) NAME
          | IRI
          | " (?!"") [^"\\\r\n]* " (?: @ [A-Za-z0-9-]+ | \^\^ (?: IRI | NAME ) )?
        ) SEP+ (?: \. SEP+ )?
    )+
    """.replace(b"SEP", rb"[\s;,()\[\]{}|~]")
    .replace(b"NAME", rb"""[^\s;,()\[\]{}|~\#<>"'.\\^][^\s;,()\[\]{}|~\#<>"'\\]{0,65000}""")
    .replace(b"IRI", rb"""<[^\x00-\x20<>"{}|^`]*>"""),
    re.VERBOSE,
)
_REST_OF_WORD = re.compile(rb"(?: CHAR | \.+ (?= CHAR ) )*".replace(b"CHAR", _CHAR), re.VERBOSE)
_REST_OF_COMMENT = re.compile(rb"[^\r\n]*")
# What a token that began so cannot end without.
_CLOSERS = {
    b'"""': re.compile(rb'"""'),
    b"'''": re.compile(rb"'''"),
    b'"': re.compile(rb'["\r\n]'),
    b"'": re.compile(rb"['\r\n]"),
    b"<": re.compile(rb'[\x00-\x20<>"{}|^`]'),
    b"#": re.compile(rb"[\r\n]"),
    b"": re.compile(rb"""[\s;,()\[\]{}|~\#<>"']"""),
}
_WORD_MAY_GO_ON = re.compile(rb"\.*\\?\Z")
_LANGUAGE_MAY_GO_ON = re.compile(rb"(?:@|-*)\Z")
_IRI_SO_FAR = re.compile(rb'<[^\x00-\x20<>"{}|^`]*')
_SCHEME = re.compile(rb"<[A-Za-z][A-Za-z0-9+.-]*:")
_DIRECTIVES = (b"prefix", b"base", b"version")
_VERSION_LINE = re.compile(rb"^[ \t]*VERSION[ \t]*(?:\"[^\"\r\n]*\"|'[^'\r\n]*')", re.MULTILINE)


class Context:
    """The prefixes and the base in force: what a later message needs of the earlier ones."""

    def __init__(self, text: bytes = b"") -> None:
        self._prefixes: dict[bytes, bytes] = {}
        self._base: bytes | None = None
        self._text: bytes | None = None
        words = text.split()
        while words:
            if words[0] == b"BASE":
                self._base, words = words[1], words[2:]
            else:
                self._prefixes[words[1]], words = words[2], words[3:]

    def declare(self, name: bytes, iri: bytes) -> bool:
        """`name` is a prefix with its colon, or empty for the base. False if the IRI is none."""
        absolute = self._resolve(iri)
        if absolute is None:
            return False  # its own message is rejected for it
        if name:
            self._prefixes[name] = absolute
        else:
            self._base = absolute
        self._text = None
        return True

    def _resolve(self, iri: bytes) -> bytes | None:
        if _SCHEME.match(iri):
            return iri
        base = b"BASE " + self._base if self._base else b""
        try:
            quad = next(iter(parse(base + b" " + iri + b" a 0 .", RdfFormat.TRIG)))
        except (SyntaxError, StopIteration, MemoryError):
            return None
        return b"<" + quad.subject.value.encode() + b">" if isinstance(quad.subject, NamedNode) else None

    @property
    def prefixes(self) -> Mapping[bytes, bytes]:
        """The IRI of each name, in angle brackets; names end with their colon."""
        return self._prefixes

    @property
    def base(self) -> bytes | None:
        return self._base

    @property
    def text(self) -> bytes:
        """As Turtle directives, all on one line so that line numbers do not move."""
        if self._text is None:
            parts = [b"PREFIX %s %s " % item for item in self._prefixes.items()]
            parts += [b"BASE %s " % self._base] if self._base else []
            self._text = b"".join(parts)
        return self._text


class Message(NamedTuple):
    """A message in a buffer: its text is data[:text_end], its delimiter ends at `end`."""

    text_end: int
    end: int
    context: bytes  # in force behind it
    record: bool = True


class MessageSplitter:
    """Walks the tokens of a growing buffer, remembering where it stopped and in which state."""

    def __init__(self, context: bytes = b"", longest: int = MAX_RECORD) -> None:
        self.context = context
        self._context = Context(context)
        self._longest = longest
        self._reset()

    def _reset(self) -> None:
        self._seen = 0  # where the next token starts, counted from the start of the message
        self._statements = False  # whether the message says anything but directives
        self._directive: list[bytes] = []  # the tokens so far of a PREFIX, BASE or VERSION
        self._owes_dot = False  # behind an @directive
        self._at_message: int | None = None  # where an @message starts that has no dot yet
        self._looked = 0  # up to where the end of the token at `_seen` was looked for in vain; 0: not yet
        self._inside: re.Pattern[bytes] | None = (
            None  # a word or comment that is too long: what goes on with it
        )
        self._forgot = False  # whether some of the message is not in the buffer any more

    def cuts(self, data: bytes, at_end: bool) -> list[Cut]:
        return [Cut(m.end, m.context, m.record) for m in self.messages(data, at_end)]

    def messages(self, data: bytes, at_end: bool) -> list[Message]:
        found: list[Message] = []
        start, at, size = 0, self._seen, len(data)
        if self._looked and not at_end and size - at <= self._longest and not self._may_close(data):
            self._looked = size
            return found
        self._looked = 0
        while at < size:
            if self._inside is not None:
                rest = self._inside.match(data, at)
                assert rest is not None  # it matches nothing, too
                at = rest.end()
                if not at_end and _WORD_MAY_GO_ON.match(data, at):
                    break
                self._inside = None
                continue
            if not self._directive and self._at_message is None:
                plain = _PLAIN.match(data, at, at + min(STROKE, self._longest))
                if plain is not None:
                    self._statements, at = True, plain.end()
                    continue
            token = _WORD.match(data, at, at + WORD + 1) or _TOKEN.match(data, at)
            assert token is not None  # junk matches any byte
            kind, end = token.lastgroup, token.end()
            comment = data[at : at + 1] == b"#"
            longest = WORD if kind == "word" else self._longest
            open_still = not at_end and (end == size or _may_grow(data, at, end, kind))
            if open_still and size - at <= longest and (kind != "space" or comment):
                self._looked = size if kind in ("word", "junk") or comment else 0
                break
            if open_still or end - at > longest:  # no token at all
                if kind == "word" or comment:
                    kind, self._inside = ("space", _REST_OF_COMMENT) if comment else ("junk", _REST_OF_WORD)
                elif kind in ("string", "iri", "junk"):
                    kind, end = "junk", at + 1
            text, before, at = data[at:end] if kind == "word" or self._directive else b"", at, end
            delimiter = None
            if kind == "word" and text.upper() == b"MESSAGE":
                delimiter = before
            elif kind == "dot" and self._at_message is not None:
                delimiter, at = start + self._at_message, before + 1
            if delimiter is not None:
                found.append(Message(delimiter, at, self._context.text))
                start = at
                self._reset()
            elif kind != "space":
                self._follow(kind, text, before - start)
        if at_end and (start < size or self._forgot):
            said = self._statements or bool(self._directive) or self._at_message is not None
            found.append(Message(size, size, self._context.text, record=said))
            self._reset()
        else:
            self._seen = at - start
            if self._looked:
                self._looked -= start
        return found

    def forget(self, size: int) -> int:
        if not self._forgot and self._seen <= self._longest:
            return 0  # the token behind may turn out to be none, and the message may end before its end
        gone, self._seen = self._seen, 0
        self._forgot = True
        self._looked = max(0, self._looked - gone)
        if self._at_message is not None:
            self._at_message -= gone
        return gone

    def _may_close(self, data: bytes) -> bool:
        """Whether there is something new by which the token at `_seen` may end."""
        begins = data[self._seen : self._seen + 3]
        opened = begins if begins in _CLOSERS else begins[:1] if begins[:1] in _CLOSERS else b""
        return _CLOSERS[opened].search(data, max(self._seen + 1, self._looked - 2)) is not None

    def _follow(self, kind: str | None, text: bytes, at: int) -> None:
        """Take notice of directives, and of whether anything else is said."""
        if self._at_message is not None:  # without its dot no delimiter, but an error for the parser
            self._statements, self._at_message = True, None
        words = self._directive
        if not words:
            name = text[text.startswith(b"@") :].lower()
            if kind == "word" and text == b"@message":
                self._at_message = at
            elif kind == "word" and name in _DIRECTIVES:
                words.append(name)
                self._owes_dot = text.startswith(b"@")
            elif kind == "dot" and self._owes_dot:
                self._owes_dot = False
            else:
                self._statements = True
            return
        words.append(text)
        if words[0] == b"prefix" and len(words) == 2 and kind == "word" and text.endswith(b":"):
            return
        if kind == "iri" and words[0] == b"prefix" and len(words) == 3:
            self._context.declare(words[1], text)
        elif kind == "iri" and words[0] == b"base":
            self._context.declare(b"", text)
        elif not (kind == "string" and words[0] == b"version"):
            self._statements = True  # a broken directive
        self._directive = []


def _may_grow(data: bytes, at: int, end: int, kind: str | None) -> bool:
    """Whether the token at `at`, which does not reach the end of the buffer, may change with more bytes."""
    if kind == "word":
        return _WORD_MAY_GO_ON.match(data, end) is not None
    if kind == "string":
        return _LANGUAGE_MAY_GO_ON.match(data, end) is not None
    if kind != "junk":
        return False
    if data[at:end] == b"<":
        so_far = _IRI_SO_FAR.match(data, at)
        return so_far is not None and so_far.end() == len(data)
    if data.startswith((b'"""', b"'''"), at):
        return True
    if data[at:end] in (b'"', b"'"):
        return data.find(b"\n", at) < 0 and data.find(b"\r", at) < 0
    return False


def parse_message(context: bytes, text: bytes, first_line: int) -> list[Quad]:
    """The quads of one message, in any of the four syntaxes (TriG has three of them in it)."""
    try:
        return parsed(context + text, RdfFormat.TRIG)
    except RecordError as error:
        as_trig = error
    try:
        return parsed(_VERSION_LINE.sub(b"", text), RdfFormat.N_QUADS)
    except RecordError as error:
        # Tell the complaint of the parser that came further.
        worst = error if _line_of(error) > _line_of(as_trig) else as_trig
        if isinstance(worst.__cause__, SyntaxError):
            raise RecordError(reason_of(worst.__cause__, first_line)) from None
        raise worst from None


def _line_of(error: RecordError) -> int:
    return error.__cause__.lineno or 0 if isinstance(error.__cause__, SyntaxError) else 0


class Messages:
    name = "messages"
    about = 'RDF Messages: Turtle, TriG, N-Triples or N-Quads with VERSION "1.2-messages" and MESSAGE'
    extensions: tuple[str, ...] = ("messages", "ttl", "trig")

    def prepare(self, mapping: Mapping[str, Any] | None) -> None:
        no_mapping(self.name, mapping)

    def splitter(self, mapping: Any, longest: int = MAX_RECORD) -> MessageSplitter:
        return MessageSplitter(longest=longest)

    def read(self, chunk: Chunk, how: Reading) -> Iterator[Event]:
        start, line, ordinal, context = 0, chunk.first_line, chunk.ordinal, chunk.context
        for message in MessageSplitter(chunk.context, how.longest).messages(chunk.data, at_end=True):
            text = chunk.data[start : message.text_end]
            if message.record:
                try:
                    quads = scoped(parse_message(context, text, line), scope_of(how.name, ordinal))
                    event = how.event(event_time(quads, how.time_predicate), quads)
                except RecordError as error:
                    blank = len(text) - len(text.lstrip())
                    how.reject(line + text.count(b"\n", 0, blank), str(error), text.strip())
                else:
                    yield event
                ordinal += 1
            line += chunk.data.count(b"\n", start, message.end)
            start, context = message.end, message.context


MESSAGES: Framing = Messages()
