"""Models of a Ray cluster: held in actors, and limits that hold for all processes."""
