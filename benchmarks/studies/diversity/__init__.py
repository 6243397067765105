"""Effect of varied training environments on a language model, with equally many samples."""
