"""The demonstration: a generated hospital network, in which no real person occurs."""
