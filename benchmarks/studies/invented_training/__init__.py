"""Stage 2 on the phone and on devices with invented apps."""
