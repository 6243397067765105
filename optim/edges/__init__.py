"""Who talks to whom, as parameters: a distribution over DAGs, and how it is learned."""
