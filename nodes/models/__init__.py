"""Language models behind agents."""
