"""Critics that a language model learns: the replies, the training and the figures."""
