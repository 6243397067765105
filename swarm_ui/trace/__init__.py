"""Records of decisions and episodes, and their files."""
