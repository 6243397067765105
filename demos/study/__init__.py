"""What the demos share: the parts of the library joined into one experiment."""
