"""Stage 2 by command: settings, roles other than the agents, and the training itself."""
