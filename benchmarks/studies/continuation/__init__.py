"""A trained team continues to learn in another environment."""
