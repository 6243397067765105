"""Updates of adapters by several processes that ``accelerate launch`` started."""
