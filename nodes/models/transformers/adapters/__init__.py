"""LoRA adapters of models in this process: weights, versions, files."""
