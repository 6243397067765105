"""Decisions on the same screens with and without edges."""
