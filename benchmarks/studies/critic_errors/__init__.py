"""Stage 2 under critics that err."""
