"""The base agent on real MiniWoB++ pages."""
