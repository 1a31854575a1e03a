"""Aggregates, kept up to date: each is a function of the bag of its members in a file of its own.

So what it says depends neither on the order of its members nor on how they came. Numbers, times, booleans,
strings and IRIs are aggregated as ids, in arrays; what arrays cannot hold or compare is looked up as terms.
"""
