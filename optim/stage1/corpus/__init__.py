"""Corpora of stage 1, synthesised by walking an environment."""
