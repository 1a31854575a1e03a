"""Shards: the engine in several pieces, each with its part of the elements, all with the same time."""
