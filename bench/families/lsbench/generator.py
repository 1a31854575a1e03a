"""LSBench's social network: stored profiles and friendships, and five streams of what users do.

Shape and skew follow data of the original generator: how many triples a post or photo has, tags per
post and how often each tag comes, likes per post or photo (by friends of its author, each written
several times over), photos per album, people in a photo, friends per user, lengths of literals.

Who knows whom depends on `scale` alone, so that stored data and streams fit each other whatever their
seeds are.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from bench.families.base import Block
from bench.families.draws import Choice, below, disturbed, generator, instants, rounds, spread
from bench.families.lsbench import network_kernels as network
from bench.families.lsbench.vocabulary import (
    AGENTS,
    BROWSER_SHARES,
    BROWSERS,
    COUNTRIES,
    COUNTRY_SKEW,
    DBP,
    DC,
    FOAF,
    NAMES,
    RDF,
    SIB,
    SIOC,
    STREAMS,
    TAG_SKEW,
    TEXT_SKEW,
    TEXTS,
    VOC,
    XSD,
    places,
    texts,
    words,
)
from bench.families.text_kernels import TextWriter

START = 1_264_982_400_000  # 1 February 2010, where the original's streams begin
SOCIABLE = 0.25  # how readily the shyest user makes friends
DEGREES = 10**14  # the unit of latitudes and longitudes
GPS_PLACES = (*range(100, 104), *range(6, 78, 6))  # most of them towns, where few photos are taken
DATE_TIME, DOUBLE, DATE = f"^^<{XSD}dateTime>", f"^^<{XSD}double>", f"^^<{XSD}date>"
MIX = {"post": 0.196, "photo": 0.485, "gps": 0.319}  # of all triples, with their likes

COUNTRY_CHOICE = Choice.power_law(len(COUNTRIES), COUNTRY_SKEW)
BROWSER_CHOICE = Choice(BROWSER_SHARES)


def friends(
    who: np.ndarray, start: np.ndarray, many: np.ndarray, users: int
) -> tuple[np.ndarray, np.ndarray]:
    """Up to that many friends of each, and how many they are."""
    return network.some_friends(who, start, many, users, network.BLOCKS, network.ROUNDS, SOCIABLE)


def stream(
    *,
    triples: int = 1_000_000,
    rate: float = 10_000,
    seed: int = 1,
    scale: int = 1_000,
    streams: Sequence[str] = tuple(STREAMS),
    active: float = 0.42,
    user_skew: float = 0.0,
    tag_skew: float = TAG_SKEW,
    post_likes: int = 8,
    photo_likes: int = 9,
    post_like_copies: int = 10,
    photo_like_copies: int = 4,
    like_delay: int = 0,
    people_in_photo: int = 9,
    burst: float = 0.0,
    late: float = 0.0,
    late_by: int = 1_000,
    duplicates: float = 0.0,
    block: int = 1 << 16,
) -> Iterator[Block]:
    """The streams side by side, in blocks of about `block` triples of all of them.

    scale       users
    streams     those that are made (`post`, `postlike`, …); the rate is that of these together
    active      share of users that post; they do so equally often if `user_skew`, the exponent of
                a power law over them, is 0
    tag_skew    exponent of the power law over hash tags
    post_likes, photo_likes, people_in_photo
                at most so many; any number down to none is equally likely
    post_like_copies, photo_like_copies
                each like is so many elements, as in the original
    like_delay  milliseconds from a thing to its likes, in the mean
    burst       share of elements moved into one second of every ten
    late        share of elements that come up to `late_by` ms after others of a later time
    duplicates  share of elements that come twice
    """
    wanted = [name for name in STREAMS if name in streams or STREAMS[name] in streams]
    makers: list[_Maker] = []
    rng = generator(seed)
    posters = _Users(scale, active, user_skew)
    if {"post", "postlike"} & set(wanted):
        makers.append(_Posts(rng, posters, tag_skew, post_likes, post_like_copies, like_delay))
    if {"photo", "photolike"} & set(wanted):
        makers.append(_Photos(rng, posters, people_in_photo, photo_likes, photo_like_copies, like_delay))
    if "gps" in wanted:
        makers.append(_Gps(rng, scale))
    share = {m: MIX[m.name] * m.wanted(wanted) / m.wanted((m.name, m.likes)) for m in makers}
    every = {  # milliseconds from one thing to the next
        m: 1000 * m.wanted(wanted) * sum(share.values()) / (share[m] * rate) for m in makers
    }
    spans = list(rounds(triples, rate, block))
    for span in spans:
        for maker in makers:
            times, end = instants(rng, span, every[maker], burst)
            for name, lines in maker.make(START + times, START + end, span is spans[-1]):
                if name in wanted and len(lines.kinds):
                    yield lines.block(STREAMS[name], disturbed(rng, lines.times, late, late_by, duplicates))


class _Lines:
    """Lines of one stream, in order of time."""

    def __init__(
        self,
        writer: TextWriter,
        columns: dict[str, np.ndarray],
        kinds: np.ndarray,
        records: np.ndarray,
        items: np.ndarray,
    ) -> None:
        self.writer, self.columns, self.kinds, self.records, self.items = (
            writer,
            columns,
            kinds,
            records,
            items,
        )
        self.times = columns["t"][records]

    def block(self, stream: str, order: np.ndarray | None) -> Block:
        kinds, records, items = self.kinds, self.records, self.items
        if order is not None:
            kinds, records, items = kinds[order], records[order], items[order]
        text = self.writer.write(self.columns, kinds, records, items)
        return Block(stream, text, len(kinds), int(self.times.max()))


class _Users:
    """Who is active: a share of all users, by a power law or equally often."""

    def __init__(self, scale: int, active: float, skew: float) -> None:
        self.scale, self.active = scale, max(1, int(scale * active))
        self.choice = Choice.power_law(self.active, skew) if skew else None

    def draw(self, rng: np.random.Generator, many: int) -> np.ndarray:
        ranks = below(rng, self.active, many) if self.choice is None else self.choice.draw(rng, many)
        return spread(ranks, self.scale)


class _Likes:
    """Likes of things by friends of their authors; those that come later wait for their round."""

    def __init__(
        self, rng: np.random.Generator, scale: int, thing: str, most: int, copies: int, delay: int
    ) -> None:
        self.rng, self.scale, self.most, self.copies, self.delay = rng, scale, most, copies, delay
        self.mean = most / 2 * copies
        self.writer = TextWriter(
            {"like": f"{{t}}\t<{SIB}user/u{{by}}> <{VOC}like> <{SIB}{thing}{{thing}}> .\n"}
        )
        self.waiting = np.zeros((3, 0), np.int64)  # time, by, thing

    def make(
        self, times: np.ndarray, authors: np.ndarray, things: np.ndarray, until: int, all: bool
    ) -> _Lines:
        rng, many = self.rng, len(times)
        found, by = friends(
            authors, below(rng, network.ROUNDS, many), below(rng, self.most + 1, many), self.scale
        )
        # Each thing's likes, all of them, again and again: the original writes them so.
        of = np.repeat(np.arange(many), found * self.copies)
        first = np.cumsum(found) - found
        turn = np.arange(len(of)) - np.repeat(self.copies * first, found * self.copies)
        rows = np.stack([times[of], by[first[of] + turn % np.maximum(found[of], 1)], things[of]])
        if self.delay:
            rows[0] += below(rng, 2 * self.delay, rows.shape[1])
            rows = np.concatenate([self.waiting, rows], axis=1)
            rows = rows[:, np.argsort(rows[0], kind="stable")]
            cut = rows.shape[1] if all else int(np.searchsorted(rows[0], until))
            rows, self.waiting = rows[:, :cut], rows[:, cut:]
        columns = {"t": rows[0], "by": rows[1], "thing": rows[2]}
        here = np.arange(rows.shape[1])
        return _Lines(self.writer, columns, np.zeros(len(here), np.uint8), here, here)


class _Maker:
    """Makes the elements of a stream, and of the likes that go with it."""

    name, likes = "", ""
    per = 0.0  # lines of one thing, in the mean
    liked: _Likes | None = None

    def wanted(self, streams: Sequence[str]) -> float:
        """Lines per thing on these streams, in the mean."""
        own = self.per if self.name in streams else 0.0
        return own + (self.liked.mean if self.liked is not None and self.likes in streams else 0.0)

    def make(self, times: np.ndarray, until: int, all: bool) -> Iterator[tuple[str, _Lines]]:
        raise NotImplementedError


def _rows(counts: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """For records with so many lines each: the record of each line, and its place among them."""
    records = np.repeat(np.arange(len(counts)), counts)
    return records, np.arange(len(records)) - np.repeat(np.cumsum(counts) - counts, counts)


def _address(users: np.ndarray) -> dict[str, np.ndarray]:
    """Users write from one address each."""
    return {"ip1": 1 + users % 220, "ip2": users // 3 % 256, "ip3": users // 7 % 32 * 8, "ip4": users % 22}


class _Posts(_Maker):
    """Posts with hash tags, and some comments on posts."""

    name, likes = "post", "postlike"
    COMMENTS, AGENT = 0.008, 0.38
    FAVOURITE = 0.35  # of a user's posts, those about the same thing

    def __init__(
        self, rng: np.random.Generator, users: _Users, tag_skew: float, most: int, copies: int, delay: int
    ) -> None:
        self.rng, self.users, self.texts = rng, users, texts(tag_skew)
        self.choice = Choice.power_law(TEXTS, TEXT_SKEW)
        self.made = 0
        self.liked = _Likes(rng, users.scale, "post/po", most, copies, delay)
        self.per = 9 + self.AGENT + 3.22
        post = f"{{t}}\t<{SIB}{{form:forms}}{{post}}>"
        self.writer = TextWriter(
            {
                "type": f"{post} <{RDF}type> <{VOC}{{form:types}}> .\n",
                "class": f"{post} <{RDF}type> <{SIOC}{{form:classes}}> .\n",
                "title": f'{post} <{DC}terms/title> "null" .\n',
                "created": f'{post} <{DC}elements/1.1/created> "{{t:iso}}"{DATE_TIME} .\n',
                "reply": f"{post} <{SIOC}reply_of> <{SIB}post/po{{in}}> .\n",
                "agent": f'{post} <{VOC}agent> "{{agent:agents}}" .\n',
                "browser": f'{post} <{VOC}browser> "{{browser:browsers}}" .\n',
                "ip": f'{post} <{SIOC}ip_address> "{{ip1}}.{{ip2}}.{{ip3}}.{{ip4}}" .\n',
                "content": f'{post} <{SIOC}content> "{{text:texts}}" .\n',
                "container": f"{{t}}\t<{SIB}{{form:containers}}{{in}}> <{SIOC}container_of> "
                f"<{SIB}{{form:forms}}{{post}}> .\n",
                "creator": f"{{t}}\t<{SIB}user/u{{by}}> <{SIOC}creator_of> <{SIB}{{form:forms}}{{post}}> .\n",
                "tag": f'{post} <{VOC}hashtag> "{{item:tags}}" .\n',
            },
            {
                "forms": (b"post/po", b"post/comment/co"),
                "types": (b"Post", b"Comment"),
                "classes": (b"Post", b"Item"),
                "containers": (b"forum/fo", b"post/po"),
                "agents": AGENTS,
                "browsers": BROWSERS,
                "texts": self.texts.text,
                "tags": self.texts.word,
            },
        )
        self.orders = _orders(
            self.writer,
            "type class title created agent browser ip content container creator",
            "type class created reply agent browser ip content container creator",
        )

    def make(self, times: np.ndarray, until: int, all: bool) -> Iterator[tuple[str, _Lines]]:
        rng, many = self.rng, len(times)
        by, text = self.users.draw(rng, many), self.choice.draw(rng, many)
        text = np.where(rng.random(many) < self.FAVOURITE, self.choice.of(spread(by, self.users.scale)), text)
        form = (rng.random(many) < self.COMMENTS).astype(np.int64)
        agent = (rng.random(many) < self.AGENT).astype(np.int64)
        post = np.arange(self.made, self.made + many)
        self.made += many
        on = np.maximum(post - 1 - below(rng, 100, many), 0)
        columns = {
            "t": times,
            "form": form,
            "post": post,
            "by": by,
            "in": np.where(form, on, 2 * by),
            "agent": below(rng, len(AGENTS), many),
            "browser": BROWSER_CHOICE.draw(rng, many),
            "text": text,
            **_address(by),
        }
        first = self.texts.first[text]
        tags = np.where(form, 0, self.texts.first[text + 1] - first)
        records, place = _rows(9 + agent + tags)
        past = place - (9 + agent)[records]
        items = self.texts.tags[np.minimum(first[records] + np.maximum(past, 0), len(self.texts.tags) - 1)]
        kinds = self.orders[form[records], agent[records], np.minimum(place, 9)]
        kinds[past >= 0] = self.writer.kind["tag"]
        yield "post", _Lines(self.writer, columns, kinds, records, items)
        posts = form == 0
        assert self.liked is not None
        yield "postlike", self.liked.make(times[posts], by[posts], post[posts], until, all)


def _orders(writer: TextWriter, *kinds: str) -> np.ndarray:
    """Kinds of lines by place, for each variant without and with the line `agent`."""
    lines = [[writer.kind[name] for name in order.split()] for order in kinds]
    agent = writer.kind["agent"]
    without = [[kind for kind in order if kind != agent] + [agent] for order in lines]
    return np.array([[bare, order] for bare, order in zip(without, lines, strict=True)], np.uint8)


class _Photos(_Maker):
    """Photos in albums, with the people in them."""

    name, likes = "photo", "photolike"
    ALBUM, AGENT, AT_HOME = 39, 0.41, 0.93  # photos in an album at most; the share taken where the album is

    def __init__(
        self, rng: np.random.Generator, users: _Users, people: int, most: int, copies: int, delay: int
    ) -> None:
        self.rng, self.users, self.people = rng, users, people
        self.made, self.albums, self.left = 0, 0, 0  # photos left in the current album
        self.by, self.place = 0, 0
        self.liked = _Likes(rng, users.scale, "photoalbum/photo/pho", most, copies, delay)
        self.per = 9 + self.AGENT + people / 2 + 4 / (self.ALBUM / 2 + 0.5)
        self.places = places()
        photo, album = f"{{t}}\t<{SIB}photoalbum/photo/pho{{photo}}>", f"{{t}}\t<{SIB}photoalbum/pa{{album}}>"
        self.writer = TextWriter(
            {
                "album type": f"{album} <{RDF}type> <http://rdfs.org/sioc/type#ImageGallery> .\n",
                "album title": f'{album} <{DC}terms/title> "Album {{home:places}}" .\n',
                "album created": f'{album} <{DC}elements/1.1/created> "{{t:iso}}"{DATE_TIME} .\n',
                "album creator": f"{{t}}\t<{SIB}user/u{{by}}> <{SIOC}creator_of> "
                f"<{SIB}photoalbum/pa{{album}}> .\n",
                "type": f"{photo} <{RDF}type> <{VOC}Photo> .\n",
                "class": f"{photo} <{RDF}type> <{SIOC}Item> .\n",
                "location": f'{photo} <{DBP}ontology/location> "{{place:places}}" .\n',
                "latitude": f'{photo} <{DBP}property/latd> "{{latitude:.14}}"{DOUBLE} .\n',
                "longitude": f'{photo} <{DBP}property/longd> "{{longitude:.14}}"{DOUBLE} .\n',
                "agent": f'{photo} <{VOC}agent> "{{agent:agents}}" .\n',
                "browser": f'{photo} <{VOC}browser> "{{browser:browsers}}" .\n',
                "ip": f'{photo} <{SIOC}ip_address> "{{ip1}}.{{ip2}}.{{ip3}}.{{ip4}}" .\n',
                "created": f'{photo} <{DC}elements/1.1/created> "{{t:iso}}"{DATE_TIME} .\n',
                "container": f"{album} <{SIOC}container_of> <{SIB}photoalbum/photo/pho{{photo}}> .\n",
                "person": f"{photo} <{VOC}usertag> <{SIB}user/u{{item}}> .\n",
            },
            {"places": self.places.name, "agents": AGENTS, "browsers": BROWSERS},
        )
        photo_order = "type class location latitude longitude agent browser ip created container"
        self.orders = _orders(self.writer, photo_order)[0]

    def make(self, times: np.ndarray, until: int, all: bool) -> Iterator[tuple[str, _Lines]]:
        rng, many = self.rng, len(times)
        new, album, by, home = self._albums(many)
        agent = (rng.random(many) < self.AGENT).astype(np.int64)
        anywhere = below(rng, len(self.places.name), many)
        place = np.where(rng.random(many) < self.AT_HOME, home, anywhere)
        photo = np.arange(self.made, self.made + many)
        self.made += many
        columns = {
            "t": times,
            "photo": photo,
            "album": album,
            "by": by,
            "home": home,
            "place": place,
            "latitude": self.places.latitude[place],
            "longitude": self.places.longitude[place],
            "agent": below(rng, len(AGENTS), many),
            "browser": BROWSER_CHOICE.draw(rng, many),
            **_address(by),
        }
        found, people = friends(
            by, below(rng, network.ROUNDS, many), below(rng, self.people + 1, many), self.users.scale
        )
        records, line = _rows(4 * new + 9 + agent + found)
        line -= 4 * new[records]  # those of an album are below zero
        past = line - (9 + agent)[records]
        kinds = self.orders[agent[records], np.clip(line, 0, 9)]
        kinds[line < 0] = (line[line < 0] + 4).astype(np.uint8)
        kinds[past >= 0] = self.writer.kind["person"]
        first = np.cumsum(found) - found
        items = np.zeros(len(records), np.int64)
        items[past >= 0] = people[(first[records] + past)[past >= 0]]
        yield "photo", _Lines(self.writer, columns, kinds, records, items)
        assert self.liked is not None
        yield "photolike", self.liked.make(times, by, photo, until, all)

    def _albums(self, many: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """For each photo whether it begins an album, and the album's number, author and place."""
        sizes = 1 + below(self.rng, self.ALBUM, many + 1)
        starts = self.left + np.concatenate([[0], np.cumsum(sizes)])
        starts = starts[starts < many]
        new = np.zeros(many, np.int64)
        new[starts] = 1
        authors = self.users.draw(self.rng, many)[: len(starts)]
        homes = COUNTRY_CHOICE.draw(self.rng, many)[: len(starts)]
        number = np.cumsum(new)
        by, home = np.concatenate([[self.by], authors])[number], np.concatenate([[self.place], homes])[number]
        album = self.albums + number
        if many:
            self.albums, self.by, self.place = int(album[-1]), int(by[-1]), int(home[-1])
            last = int(starts[-1]) + int(sizes[len(starts) - 1]) if len(starts) else self.left
            self.left = last - many
        return new, album, by, home


class _Gps(_Maker):
    """Where users are: many at the same instant, some users much more often than others."""

    name = "gps"
    per, TRACKED, TOGETHER = 5.0, 0.3, 16

    def __init__(self, rng: np.random.Generator, scale: int) -> None:
        self.rng, self.scale, self.made = rng, scale, 0
        self.tracked = max(1, int(scale * self.TRACKED))
        self.choice = Choice.power_law(len(GPS_PLACES), 1.2)
        self.places, self.at = places(), np.array(GPS_PLACES)
        seen = f"{{t}}\t<{SIB}gps/gps{{seen}}>"
        self.writer = TextWriter(
            {
                "user": f"{{t}}\t<{SIB}user/u{{by}}> <{VOC}trackedAt> <{SIB}gps/gps{{seen}}> .\n",
                "latitude": f'{seen} <{DBP}property/latd> "{{latitude:.14}}"{DOUBLE} .\n',
                "longitude": f'{seen} <{DBP}property/longd> "{{longitude:.14}}"{DOUBLE} .\n',
                "time": f'{seen} <{VOC}trackedTime> "{{t:iso}}"{DATE_TIME} .\n',
                "place": f'{seen} <{VOC}trackedLocation> "{{place:places}}" .\n',
            },
            {"places": self.places.name},
        )

    def make(self, times: np.ndarray, until: int, all: bool) -> Iterator[tuple[str, _Lines]]:
        rng, many = self.rng, len(times)
        place = self.at[self.choice.draw(rng, many)]
        ranks = (np.sqrt(rng.random(many)) * self.tracked).astype(np.int64)
        columns = {
            "t": times[np.arange(many) // self.TOGETHER * self.TOGETHER],
            "seen": np.arange(self.made, self.made + many),
            "by": spread(self.tracked - 1 - ranks, self.scale),
            "place": place,
            "latitude": self.places.latitude[place] + below(rng, DEGREES, many) // 20,
            "longitude": self.places.longitude[place] + below(rng, DEGREES, many) // 20,
        }
        self.made += many
        records, line = _rows(np.full(many, 5))
        yield "gps", _Lines(self.writer, columns, line.astype(np.uint8), records, records)


def stored(*, scale: int = 1_000, seed: int = 1, block: int = 1_024) -> Iterator[bytes]:
    """Profiles, accounts, forums, friendships and groups of `scale` users, about 100 triples each."""
    rng = generator(seed)
    writer, groups = _profile_writer(), _group_writer()
    made = 0  # friendships so far
    for first in range(0, scale, block):
        users = np.arange(first, min(first + block, scale))
        yield _profiles(rng, writer, users)
        made, text = _friendships(rng, users, scale, made)
        yield text
    many, members = max(1, scale // 26), 0
    for first in range(0, many, block // 4):
        members, text = _groups(rng, groups, np.arange(first, min(first + block // 4, many)), scale, members)
        yield text


def _profile_writer() -> TextWriter:
    person, user = f"<{SIB}person/p{{user}}>", f"<{SIB}user/u{{user}}>"
    return TextWriter(
        {
            "person": f"{person} <{RDF}type> <{FOAF}Person> .\n",
            "first": f'{person} <{FOAF}firstName> "{{first:firsts}}" .\n',
            "last": f'{person} <{FOAF}lastName> "{{last:lasts}}" .\n',
            "country": f"{person} <{FOAF}based_near> <{DBP}resource/{{country:countries}}> .\n",
            "country name": f'{person} <{FOAF}based_near> "{{country:countries}}" .\n',
            "latitude": f'{person} <{DBP}property/latd> "{{latitude:.14}}"{DOUBLE} .\n',
            "longitude": f'{person} <{DBP}property/longd> "{{longitude:.14}}"{DOUBLE} .\n',
            "organization": f'{person} <{FOAF}organization> "{{school:lasts}} University" .\n',
            "class": f'{person} <{VOC}class_year> "{{class}}"{DATE} .\n',
            "work": f'{person} <{VOC}workAt> "{{work:lasts}} Air" .\n',
            "since": f'{person} <{VOC}workFrom> "{{since}}"{DATE} .\n',
            "gender": f'{person} <{FOAF}gender> "{{gender:genders}}" .\n',
            "birthday": f'{person} <{FOAF}birthday> "{{year}}-{{month:00}}-{{day:00}}"{DATE} .\n',
            "email": f'{person} <{SIOC}email> "{{first:firsts}}{{user}}@{{mail:mails}}.com" .\n',
            "browser": f'{person} <{VOC}browser> "{{browser:browsers}}" .\n',
            "ip": f'{person} <{SIOC}ip_address> "{{ip1}}.{{ip2}}.{{ip3}}.{{ip4}}" .\n',
            "user": f"{user} <{RDF}type> <{VOC}User> .\n",
            "account class": f"{user} <{RDF}type> <{SIOC}user> .\n",
            "account": f"{user} <{SIOC}account_of> {person} .\n",
            "moderator": f"{user} <{SIOC}moderator_of> <{SIB}forum/fo{{item}}> .\n",
            "subscriber": f"{user} <{SIOC}subscriber_of> <{SIB}forum/fo{{item}}> .\n",
            "status": f'{user} <{VOC}status> "{{status:statuses}}" .\n',
            "date": f'{user} <{DC}elements/1.1/date> "{{joined:iso}}"{DATE_TIME} .\n',
            "interest": f'{user} <{VOC}interest> "{{item:firsts}} {{item:lasts}}" .\n',
        },
        {
            "firsts": words(NAMES, 21, capital=True),
            "lasts": words(NAMES, 22, capital=True),
            "countries": COUNTRIES,
            "genders": (b"male", b"female"),
            "mails": (b"gmail", b"yahoo", b"gmx", b"hotmail"),
            "browsers": BROWSERS,
            "statuses": (b"Single", b"Engaged", b"In a relationship", b"Married"),
        },
    )


# The share of users of whom this is known; everything else is known of all.
KNOWN = {
    "organization": 0.81,
    "class": 0.65,
    "work": 0.8,
    "since": 0.8,
    "gender": 0.79,
    "birthday": 0.81,
    "email": 0.8,
    "status": 0.48,
}
INTERESTS, INTEREST_SKEW = 34, 0.6
INTERESTS_PER_USER = Choice(np.array([0.2, 0.19, 0.17, 0.12, 0.12, 0.1, 0.05, 0.03, 0.02]))


def _profiles(rng: np.random.Generator, writer: TextWriter, users: np.ndarray) -> bytes:
    many = len(users)
    country = COUNTRY_CHOICE.draw(rng, many)
    name = Choice.power_law(NAMES, 0.5)
    place = places()
    columns = {
        "user": users,
        "first": name.draw(rng, many),
        "last": name.draw(rng, many),
        "country": country,
        "latitude": place.latitude[country] + below(rng, DEGREES, many),
        "longitude": place.longitude[country] + below(rng, DEGREES, many),
        "school": name.draw(rng, many),
        "class": 1950 + below(rng, 66, many),
        "work": name.draw(rng, many),
        "since": 1950 + below(rng, 66, many),
        "gender": below(rng, 2, many),
        "year": 1940 + below(rng, 56, many),
        "month": 1 + below(rng, 12, many),
        "day": 1 + below(rng, 28, many),
        "mail": below(rng, 4, many),
        "browser": BROWSER_CHOICE.draw(rng, many),
        "status": Choice(np.array([0.82, 0.07, 0.07, 0.04])).draw(rng, many),
        "joined": START + below(rng, 28 * 86_400_000, many),
        **_address(users),
    }
    interests = 1 + INTERESTS_PER_USER.draw(rng, many)
    counts = np.ones((many, len(writer.kind)), np.int64)
    for kind, share in KNOWN.items():
        counts[:, writer.kind[kind]] = rng.random(many) < share
    counts[:, [writer.kind["moderator"], writer.kind["subscriber"]]] = 2
    counts[:, writer.kind["interest"]] = interests
    cell, place_in = _rows(counts.ravel())
    records, kinds = cell // len(writer.kind), (cell % len(writer.kind)).astype(np.uint8)
    forum = 2 * users[records] + place_in
    interest = (
        Choice.power_law(INTERESTS, INTEREST_SKEW).draw(rng, many)[records] + 5 * place_in
    ) % INTERESTS
    items = np.where(kinds == writer.kind["interest"], interest, forum)
    return writer.write(columns, kinds, records, items)


FRIENDSHIP = TextWriter(
    {
        "one": f"<{SIB}friendship/fr{{number}}> <{VOC}memb> <{SIB}user/u{{one}}> .\n",
        "other": f"<{SIB}friendship/fr{{number}}> <{VOC}memb> <{SIB}user/u{{other}}> .\n",
        "initiator": f"<{SIB}friendship/fr{{number}}> <{VOC}initiator> <{SIB}user/u{{one}}> .\n",
        "requested": f'<{SIB}friendship/fr{{number}}> <{VOC}requested> "{{t:iso}}"{DATE_TIME} .\n',
        "approved": f'<{SIB}friendship/fr{{number}}> <{VOC}approved> "{{then:iso}}"{DATE_TIME} .\n',
        "knows": f"<{SIB}user/u{{one}}> <{FOAF}knows> <{SIB}user/u{{other}}> .\n",
        "known": f"<{SIB}user/u{{other}}> <{FOAF}knows> <{SIB}user/u{{one}}> .\n",
    }
)


def _friendships(rng: np.random.Generator, users: np.ndarray, scale: int, made: int) -> tuple[int, bytes]:
    """Those of users with users after them; how many there are now, and their text."""
    rounds = network.ROUNDS
    found, friend = friends(users, np.zeros(len(users), np.int64), np.full(len(users), rounds), scale)
    one = np.repeat(users, found)
    one, friend = one[one < friend], friend[one < friend]
    many, kinds = len(one), len(FRIENDSHIP.kind)
    asked = START + below(rng, 28 * 86_400_000, many)
    columns = {
        "number": np.arange(made, made + many),
        "one": one,
        "other": friend,
        "t": asked,
        "then": asked + below(rng, 10 * 86_400_000, many),
    }
    records, kind = _rows(np.full(many, kinds))
    return made + many, FRIENDSHIP.write(columns, kind.astype(np.uint8), records)


def _group_writer() -> TextWriter:
    group, member = f"<{SIB}group/g{{group}}>", f"<{SIB}group/membership/gm{{member}}>"
    return TextWriter(
        {
            "type": f"{group} <{RDF}type> <{VOC}Group> .\n",
            "class": f"{group} <{RDF}type> <{SIOC}Usergroup> .\n",
            "name": f'{group} <{SIOC}name> "Group for {{topic:topics}} in {{country:countries}}" .\n',
            **{f"{name} {i}": line for i in (1, 2) for name, line in _forum(group, f"{{forum{i}}}").items()},
            "created": f'{group} <{DC}elements/1.1/created> "{{t:iso}}"{DATE_TIME} .\n',
            "creator": f"<{SIB}user/u{{by}}> <{SIOC}creator_of> {group} .\n",
            "country": f'{group} <{VOC}tag> "{{country:countries}}" .\n',
            "topic": f'{group} <{VOC}tag> "{{topic:topics}}" .\n',
            "has": f"{group} <{SIOC}has_member> <{SIB}user/u{{by}}> .\n",
            "member": f"{member} <{VOC}member_of_membership> <{SIB}user/u{{by}}> .\n",
            "group": f"{member} <{VOC}group_of_membership> {group} .\n",
            "added": f'{member} <{VOC}added> "{{t:iso}}"{DATE_TIME} .\n',
        },
        {"topics": words(NAMES, 22, capital=True), "countries": COUNTRIES},
    )


def _forum(group: str, number: str) -> dict[str, str]:
    forum = f"<{SIB}forum/fo{number}>"
    return {
        "subscriber": f"{group} <{SIOC}subscriber_of> {forum} .\n",
        "moderator": f"<{SIB}user/u{{by}}> <{SIOC}moderator_of> {forum} .\n",
        "forum": f"{forum} <{RDF}type> <{SIOC}Forum> .\n",
        "forum created": f'{forum} <{DC}elements/1.1/created> "{{t:iso}}"{DATE_TIME} .\n',
    }


def _groups(
    rng: np.random.Generator, writer: TextWriter, groups: np.ndarray, scale: int, members: int
) -> tuple[int, bytes]:
    """Groups with 2 to 96 members each; how many members there are now, and the text."""
    many = len(groups)
    sizes = np.minimum(2 + below(rng, 95, many), max(1, scale // 2))
    group, place = _rows(1 + sizes)  # its own record comes before its members'
    by = (below(rng, scale, many)[group] + place) % scale
    columns = {
        "group": 1 + groups[group],
        "member": members + np.arange(len(group)) - group - 1,
        "topic": Choice.power_law(INTERESTS, INTEREST_SKEW).draw(rng, many)[group],
        "country": COUNTRY_CHOICE.draw(rng, many)[group],
        "forum1": 2 * (scale + groups[group]),
        "forum2": 2 * (scale + groups[group]) + 1,
        "by": by,
        "t": START + below(rng, 28 * 86_400_000, len(group)),
    }
    own = writer.kind["has"]
    lines, kind = _rows(np.where(place == 0, own, len(writer.kind) - own))
    kinds = np.where(place[lines] == 0, kind, kind + own).astype(np.uint8)
    return members + int(sizes.sum()), writer.write(columns, kinds, lines)
