"""Apps for files: lists of files, notes, pictures, recordings, songs and videos."""
