"""An independent oracle: random SPARQL queries put to Apache Jena ARQ and to Kelda, asked once and streamed.

    python -m tests.oracle --cases 2000 --seed 7

Nothing of Kelda is used to work out what is right: Jena answers each query over the content of its windows,
which `windows.py` works out from docs/semantics.md. What the two may differ in, and why, is in `quirks.py`.
"""
