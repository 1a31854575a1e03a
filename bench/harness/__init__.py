"""The harness: loads on the runners, each measured in a process of its own, and what is made of the figures.

families  the benchmarks by name            data      a stream cut into steps
workload  one load on one runner            check     the same answers as by definition, on a prefix
child     a measurement in a process        report    figures, machine and command as JSON
run       experiments with progress         compare   two reports, ratio by ratio
tables    for the terminal                  html      for the browser, with plots by `plot`
"""
