"""vLLM's engine in this process, with a LoRA adapter for each agent."""
