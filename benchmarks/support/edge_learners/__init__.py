"""Learners of edges that only the benchmarks compare."""
