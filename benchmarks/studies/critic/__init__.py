"""A critic that a language model learns, where nobody knows the solution."""
