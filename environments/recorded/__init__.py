"""Common parts of the benchmarks of recorded web tasks."""
