"""A live page about a run: it follows the files of the run, and serves them on this machine."""
