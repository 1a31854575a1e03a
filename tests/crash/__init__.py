"""Crash tests: real processes are killed under load, and the answers must be those of an undisturbed run."""
