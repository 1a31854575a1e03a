"""SPARQL 1.1 Update, carried out on a store."""
