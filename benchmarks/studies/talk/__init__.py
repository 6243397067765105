"""The same screens, decided with and without edges."""
