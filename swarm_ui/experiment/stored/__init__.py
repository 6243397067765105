"""Runs on disk: listing, deleting, comparing on one page, and answering their questions."""
