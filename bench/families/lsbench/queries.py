"""LSBench's twelve queries, and what Wukong+S asks of the same data: L1 to L6 (continuous), S1 to S6 (once).

Written from the published descriptions: LSBench's list of queries (Le-Phuoc et al., Linked Stream Data
Processing Engines: Facts and Figures, ISWC 2012, and the benchmark's site), the settings of Wukong+S
(Zhang et al., SOSP 2017).
"""

from __future__ import annotations

from bench.families.dialects import Dialects
from bench.families.lsbench.vocabulary import DBP, FOAF, SIB, SIOC, STREAMS, VOC

PREFIXES = {
    "sioc": SIOC,
    "foaf": FOAF,
    "voc": VOC,
    "user": f"{SIB}user/",
    "person": f"{SIB}person/",
    "group": f"{SIB}group/",
    "place": f"{DBP}resource/",
    "dbo": f"{DBP}ontology/",
}
SHORT = "a long window of the original, shortened; its steps are ours"
DIALECTS = Dialects(PREFIXES, STREAMS, "urn:lsbench:")
continuous, once = DIALECTS.continuous, DIALECTS.once

SAME_TAG = """{
  @post { ?user sioc:creator_of ?one . ?one voc:hashtag ?tag .
          ?user sioc:creator_of ?other . ?other voc:hashtag ?tag }
  FILTER (?one != ?other)
}"""
LIKED_BY_FRIEND = """{
  @photo { ?photo voc:usertag ?tagged }
  @photolike { ?friend voc:like ?photo }
  ?tagged foaf:knows ?friend
}"""
ON_CHANNEL = """{
  @post { ?channel sioc:container_of ?post }
  @postlike { ?friend voc:like ?post }
  ?user foaf:knows ?friend ; sioc:subscriber_of ?channel
}"""
OF_PERSON = """{
  ?user sioc:account_of person:p0
  @post { ?user sioc:creator_of ?post }
}"""
OF_FRIENDS = """{
  ?user sioc:account_of person:p0 ; foaf:knows ?friend
  @post { ?friend sioc:creator_of ?post }
}"""

LSBENCH = (
    continuous(
        "Q1",
        "What a given user does on the stream of posts: one pattern with a constant subject.",
        "?p ?o",
        "{ @post { user:u0 ?p ?o } }",
        {"post": (1_000, 1_000)},
        notes="the site describes it with a constant hash tag, its engines were measured with a constant "
        "subject",
    ),
    continuous(
        "Q2",
        "Posts of a given person: a pattern on the stream, filtered by stored data.",
        "?post",
        OF_PERSON,
        {"post": (1_000, 1_000)},
        stored=True,
    ),
    continuous(
        "Q3",
        "Posts by friends of a given person: the stream joined with stored friendships.",
        "?friend ?post",
        OF_FRIENDS,
        {"post": (5_000, 5_000)},
        stored=True,
    ),
    continuous(
        "Q4",
        "Two posts of one user with the same hash tag within 15 seconds: the stream joined with itself.",
        "?one ?other ?tag",
        SAME_TAG,
        {"post": (15_000, 5_000)},
    ),
    continuous(
        "Q5",
        "A photo that somebody is tagged in is liked by a friend of theirs: two streams, stored friendships.",
        "?tagged ?friend ?photo",
        LIKED_BY_FRIEND,
        {"photo": (10_000, 1_000), "photolike": (1_000, 1_000)},
        stored=True,
        notes=f"photos of a day in the original; {SHORT}",
    ),
    continuous(
        "Q6",
        "Posts liked by friends on channels that one subscribes to: two streams, two stored patterns.",
        "?user ?friend ?post ?channel",
        ON_CHANNEL,
        {"post": (10_000, 1_000), "postlike": (1_000, 1_000)},
        stored=True,
        notes=SHORT,
    ),
    continuous(
        "Q7",
        "Friends tagged in a photo that was taken where the user is and that somebody likes: three streams.",
        "?user ?friend ?photo ?place",
        """{
  @gps { ?user voc:trackedAt ?seen . ?seen voc:trackedLocation ?place }
  @photo { ?photo dbo:location ?place ; voc:usertag ?friend }
  @photolike { ?someone voc:like ?photo }
  ?user foaf:knows ?friend
}""",
        {"gps": (500, 500), "photo": (2_000, 500), "photolike": (500, 500)},
        stored=True,
        notes=f"nearby is read as: the same place name; a day and 15 minutes in the original; {SHORT}",
    ),
    continuous(
        "Q8",
        "Somebody likes a photo of a person and is not their friend: a join with negation.",
        "?tagged ?stranger ?photo",
        """{
  @photo { ?photo voc:usertag ?tagged }
  @photolike { ?stranger voc:like ?photo }
  FILTER (?tagged != ?stranger)
  FILTER NOT EXISTS { ?tagged foaf:knows ?stranger }
}""",
        {"photo": (2_000, 1_000), "photolike": (1_000, 1_000)},
        stored=True,
        notes=SHORT,
    ),
    continuous(
        "Q9",
        "Posts and photos liked by friends of a user's friends: a join with a union of two streams.",
        "?friend ?liker ?thing",
        """{
  user:u0 foaf:knows ?friend . ?friend foaf:knows ?liker
  { @postlike { ?liker voc:like ?thing } } UNION { @photolike { ?liker voc:like ?thing } }
}""",
        {"postlike": (1_000, 1_000), "photolike": (1_000, 1_000)},
        stored=True,
    ),
    continuous(
        "Q10",
        "How many posts each hash tag has had in the last 15 seconds.",
        "?tag (COUNT(?post) AS ?posts)",
        "{ @post { ?post voc:hashtag ?tag } }",
        {"post": (15_000, 5_000)},
        after="GROUP BY ?tag",
        notes="of all tags rather than one",
    ),
    continuous(
        "Q11",
        "How many users like a post of a creator, in the mean over the creator's posts.",
        "?creator (AVG(?users) AS ?mean)",
        """{
  { SELECT ?creator ?post (COUNT(DISTINCT ?user) AS ?users)
    WHERE {
      @post { ?creator sioc:creator_of ?post }
      @postlike { ?user voc:like ?post }
    }
    GROUP BY ?creator ?post }
}""",
        {"post": (10_000, 5_000), "postlike": (10_000, 5_000)},
        after="GROUP BY ?creator",
        notes=f"two hours in the original; {SHORT}; posts that nobody likes do not count",
    ),
    continuous(
        "Q12",
        "The ten most frequent hash tags.",
        "?tag (COUNT(?post) AS ?posts)",
        "{ @post { ?post voc:hashtag ?tag } }",
        {"post": (10_000, 5_000)},
        after="GROUP BY ?tag\nORDER BY DESC(COUNT(?post)) ?tag\nLIMIT 10",
        notes=f"two hours in the original; {SHORT}; equal counts are ordered by tag",
    ),
)

_WUKONG = (1_000, 100)  # every window of Wukong+S's queries
WUKONG_CONTINUOUS = (
    continuous(
        "L1",
        "What a given user does on two streams.",
        "?p ?o",
        "{ { @post { user:u0 ?p ?o } } UNION { @gps { user:u0 ?p ?o } } }",
        {"post": _WUKONG, "gps": _WUKONG},
    ),
    continuous("L2", "Posts of a given person.", "?post", OF_PERSON, {"post": _WUKONG}, stored=True),
    continuous(
        "L3",
        "Posts by friends of a given person.",
        "?friend ?post",
        OF_FRIENDS,
        {"post": _WUKONG},
        stored=True,
    ),
    continuous(
        "L4", "Two posts of one user with the same hash tag.", "?one ?other ?tag", SAME_TAG, {"post": _WUKONG}
    ),
    continuous(
        "L5",
        "A photo that somebody is tagged in is liked by a friend of theirs.",
        "?tagged ?friend ?photo",
        LIKED_BY_FRIEND,
        {"photo": _WUKONG, "photolike": _WUKONG},
        stored=True,
    ),
    continuous(
        "L6",
        "Posts liked by friends on channels that one subscribes to.",
        "?user ?friend ?post ?channel",
        ON_CHANNEL,
        {"post": _WUKONG, "postlike": _WUKONG},
        stored=True,
    ),
)
WUKONG_ONCE = (
    once("S1", "Everything about a user.", "?p ?o", "{ user:u0 ?p ?o }", ("post", "photo", "gps")),
    once(
        "S2",
        "Posts of a person.",
        "?post",
        "{ ?user sioc:account_of person:p0 ; sioc:creator_of ?post }",
        ("post", "photo"),
        "what a user creates may be an album too",
    ),
    once(
        "S3",
        "Posts by friends of a person.",
        "?friend ?post",
        "{ ?user sioc:account_of person:p0 ; foaf:knows ?friend . ?friend sioc:creator_of ?post }",
        ("post", "photo"),
    ),
    once(
        "S4",
        "Photos of a group's members, and who made their albums.",
        "?member ?photo ?album ?by",
        """{ group:g1 sioc:has_member ?member . ?photo voc:usertag ?member .
  ?album sioc:container_of ?photo . ?by sioc:creator_of ?album }""",
        ("photo",),
    ),
    once(
        "S5",
        "Profiles of a user's friends.",
        "?user ?profile ?gender ?day ?email",
        """{ user:u0 foaf:knows ?user . ?user sioc:account_of ?profile .
  ?profile foaf:gender ?gender ; foaf:birthday ?day ; sioc:email ?email }""",
        (),
    ),
    once(
        "S6",
        "Tags of posts from one country that people in another like.",
        "?author ?post ?liker ?tag",
        """{ ?author sioc:account_of ?one . ?one foaf:based_near place:Peoples_Republic_of_China .
  ?author sioc:creator_of ?post . ?liker voc:like ?post . ?post voc:hashtag ?tag .
  ?liker sioc:account_of ?other . ?other foaf:based_near place:United_States }""",
        ("post", "postlike"),
        "Wukong+S asks for the place of the user; in the data it is the place of the person",
    ),
)
QUERIES = LSBENCH + WUKONG_CONTINUOUS + WUKONG_ONCE
