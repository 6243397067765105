"""What the commands of :mod:`benchmarks` and its studies import: measures, problems, records."""
