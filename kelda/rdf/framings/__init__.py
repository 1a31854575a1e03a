"""The framings: how a stream's bytes are cut into records, and a record read as an event.

One file, one framing. Each is two ideas: where a record ends (its splitter) and what a record
says (its `read`). Nothing here opens a file; `kelda.rdf.framing` does.
"""
