"""The workers of a run in its report: where their time went, and a row for each over time."""
