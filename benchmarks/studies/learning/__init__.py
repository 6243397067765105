"""Gain of a team from learning, with ablations and controls."""
