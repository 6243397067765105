"""Updates of adapters on preference pairs and scored replies."""
