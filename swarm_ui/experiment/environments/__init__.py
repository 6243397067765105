"""Episodes of the demo and of studies."""
