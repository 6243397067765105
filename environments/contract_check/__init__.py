"""The environment contract as an executable check."""
