"""Learning edges for teams in which each agent sees a window of a long screen."""
