"""Environments as Gymnasium and PettingZoo environments."""
