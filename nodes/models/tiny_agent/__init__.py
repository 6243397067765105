"""The embedded base agent: a tiny transformer that reads screens as compact tokens."""
