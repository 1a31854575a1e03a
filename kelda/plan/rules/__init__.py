"""Rewrites of the algebra: each is a function `Query -> Query` in a file of its own, whose opening says why
the query means the same afterwards. `kelda.plan.optimize` applies them."""
