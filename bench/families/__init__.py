"""Families of benchmarks, one package each."""
