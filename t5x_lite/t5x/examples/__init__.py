"""Model definitions and their gin files."""
