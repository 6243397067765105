"""Batched decoding of models in this process, with grammars and shared prefixes."""
