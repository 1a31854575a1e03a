"""Windows, clocks, reports, and the reference evaluator that defines the answers."""
