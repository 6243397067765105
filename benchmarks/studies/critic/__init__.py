"""A language model as a trained critic, for environments without a known solution."""
