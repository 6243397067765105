"""What variety of the training world is worth to a language model, at equal numbers of samples."""
