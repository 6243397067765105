"""Both training stages of a real language model, with the ``swarm-ui`` commands."""
