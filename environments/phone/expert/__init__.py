"""The reference solver of the phone's tasks."""
