"""Pretrained language models by name: downloaded once, converted, and kept in the cache."""
