"""The handset's screen: widgets, geometry, touch, accessibility tree and pixels."""
