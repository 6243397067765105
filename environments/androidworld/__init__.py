"""AndroidWorld, on an emulator or on a simulated handset."""
