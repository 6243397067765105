"""Graphs of agents: structure, composition, shapes and other forms."""
