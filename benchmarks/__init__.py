"""Measurements: ``python -m benchmarks STUDY`` and ``python -m benchmarks.speed.NAME``."""
