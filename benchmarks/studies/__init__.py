"""Studies of learning in teams, one module each; ``python -m benchmarks STUDY`` prints one."""
