"""Where the episodes of a run are played: in this process, or in workers of a Ray cluster."""
