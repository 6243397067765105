"""Files: the journal of runs of graphs, and the folders of runs."""
