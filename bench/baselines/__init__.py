"""L1 to L6 as one would write them by hand in Spark Structured Streaming, to be run beside the pipeline.

Two ways: `join` keeps its windows in Spark's state store (stream-stream joins with watermarks), `again`
keeps the last second of each stream itself and joins anew in every batch (foreachBatch). L1 to L3 need
neither: they are filters, with the stored side looked up beforehand.

Every solution is sent once, when its newest element has come, and joins elements less than a second apart:
what the CQELS-QL texts of the queries say. Both send bags; where an equal solution comes as another goes,
in the same millisecond, CQELS-QL sends nothing and Spark sends it, so the sets are compared.

With `sliding`, windows of a second end every 100 ms and every solution is sent for each window that has it:
what the C-SPARQL and RSP-QL texts say. `join` and the filters find a solution once and repeat it, `again`
evaluates each window by itself. There a window is a graph, and of equal elements it has one; these keep them
all, which is less work, so the sets are compared here too. A filter that repeats what it finds does not know
when a window has all its answers; the third way of L1 to L3, `windows`, does: it sends a window's answers
together when that has closed, by Spark's windows and watermarks.
"""

from bench.baselines.process import run

__all__ = ["run"]
