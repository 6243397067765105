"""The handset's adb and the programs of its shell."""
