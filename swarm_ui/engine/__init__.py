"""Runs of graphs: plans, sessions, replays and events."""
