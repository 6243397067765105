"""Learning (with torch): edges, adapters, credit, preferences, stage 1, and the trainer."""

if __name__ == "optim":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.optim, not optim")
