"""Experiments: configuration, runs, results and progress, for commands, demos and benchmarks."""
