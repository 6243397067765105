"""Critics, which give :class:`swarm_ui.Credit` to every message of an episode."""
