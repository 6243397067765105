"""The parts of ``benchmarks/scale.py``: what is played, measured, and simulated."""
