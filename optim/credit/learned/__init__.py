"""A critic that a language model learns: its samples, its training and its calibration."""
