"""Runs a graph: schedule, scheduler, run state, replay and events."""
