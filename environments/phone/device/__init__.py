"""The simulated device: its state, and what actions do to it."""
