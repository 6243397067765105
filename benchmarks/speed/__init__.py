"""Measurements of speed: ``python -m benchmarks.speed.{engine,models,worlds,edges,ray}``."""
