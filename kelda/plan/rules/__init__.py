"""Rewrites of the algebra: each is a function `Query -> Query` in a file of its own."""
