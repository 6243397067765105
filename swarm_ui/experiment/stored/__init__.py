"""Runs that are on disk: listed, deleted, compared on one page, answered and gone on with."""
