"""Measurements: each module is a command, ``python benchmarks/NAME.py``."""
