"""Preference pairs from credit."""
