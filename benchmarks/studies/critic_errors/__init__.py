"""Stage 2 with critics that make errors."""
