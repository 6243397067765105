"""Studies of learning, one package each: ``python -m benchmarks.studies.NAME``."""
