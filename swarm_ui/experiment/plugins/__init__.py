"""Plug-ins: environments, models, wrappers and loggers that other packages provide."""
