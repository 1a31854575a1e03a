"""One-shot queries on a cluster: the Parquet files of a store are tables that Spark reads.

files        which files make up the store, and up to which moment it is read
facts        what a task reads of them: its buckets
conjunction  a group of patterns as *stars*, patterns with one subject, and what is joined with them
stars        a star, found in the task that reads it: no shuffle
rows         solutions as a DataFrame of ids
joins        DataFrame joins with SPARQL's compatibility
terms        the texts of ids, where somebody looks at them
evaluated    filters, new variables and sort keys, by the engine's own code in tasks
groups       aggregates, likewise
refused      what is not asked on a cluster, and why
run          a pattern, put together from these
store        what users hold
"""
