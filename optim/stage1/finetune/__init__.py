"""Fine-tuning of causal language models on a corpus."""
