"""The user interface of the device: widgets, layout, and the effect of actions."""
