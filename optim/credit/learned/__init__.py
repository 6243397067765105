"""Training of a language model as a critic: samples, training and calibration."""
