"""Assigners of credit to messages."""
