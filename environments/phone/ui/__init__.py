"""What the simulated device shows: screens, widgets and their layout."""
