"""Screenshots of the simulated device."""
