"""Comparison and calibration of assigners of credit."""
