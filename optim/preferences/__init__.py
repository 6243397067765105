"""From credit to preference pairs."""
