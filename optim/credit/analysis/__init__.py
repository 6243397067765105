"""Comparison and calibration of critics."""
