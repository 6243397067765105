"""Distributions over the edges of a team, and how they are learned."""
