"""Runs of graphs: plans, sessions, replays, events and telemetry."""
