"""Trained critics: the judged replies, the training on them, and the measured figures."""
