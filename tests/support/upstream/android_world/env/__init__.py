"""The device, and its actions."""
