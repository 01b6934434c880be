"""Queries on tables: one declaration a file, each with its own sensitivity."""
