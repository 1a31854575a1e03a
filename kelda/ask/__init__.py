"""One-shot queries and updates: the operators of the engine at one moment of the store."""
