"""Stored graphs: tables of facts in time, snapshots, and the files that outlive the process."""
