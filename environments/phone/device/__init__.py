"""The simulated device: its state, and the effects that change it."""
