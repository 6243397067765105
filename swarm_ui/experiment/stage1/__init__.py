"""Stage 1 by command: the base agent, corpora, fine-tuning."""
