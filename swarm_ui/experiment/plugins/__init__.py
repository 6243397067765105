"""What other packages add under a name: environments, models, wrappers and loggers."""
