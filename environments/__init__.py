"""Environments for agents; all keep the contract of :mod:`swarm_ui.environment`."""

if __name__ == "environments":  # the folder was imported by its bare name, from a checkout's root
    raise ImportError("import swarm_ui.environments, not environments")
