"""A real language model through both stages, by the commands that users have."""
