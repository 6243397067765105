"""The demo: a team of agents learns to operate a phone, and acts on real web pages."""
