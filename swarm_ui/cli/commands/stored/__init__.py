"""Commands about runs that are on disk."""
