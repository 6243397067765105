"""Models of transformers in this process, with a LoRA adapter for each agent."""
