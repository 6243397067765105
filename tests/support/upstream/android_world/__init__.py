"""A stand-in for upstream's package. It needs ``android_forest`` on the import path."""
