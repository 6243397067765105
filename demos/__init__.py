"""Examples, and the recipe of the included agents."""
