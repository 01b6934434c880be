"""The vocabulary that all other parts share; it imports nothing above it."""
