"""What else could answer the same queries, run beside us on the same data."""
