"""Stage 2 by command: its settings, its roles beside the agents, and the training itself."""
