"""What is learned: edges, adapters, credit, preferences, synthesis, and the trainer (torch)."""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")
