"""What the benchmarks of recorded web tasks share."""
