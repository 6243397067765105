"""Graphs of agents: structure, composition, validation, shapes and other forms."""
