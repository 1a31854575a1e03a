"""One-shot queries over a view of the stored graphs, by operators on columns of ids."""
