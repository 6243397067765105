"""A team goes on learning on another environment."""
