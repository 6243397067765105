"""Models whose replies are scripted or recorded."""
