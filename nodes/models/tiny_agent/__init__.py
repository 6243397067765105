"""The embedded agents: a tiny transformer that reads screens as compact tokens."""
