"""Who talks to whom, when each agent sees a window of a long screen."""
