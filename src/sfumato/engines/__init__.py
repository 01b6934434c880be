"""Engines: sources, the closed grammar of expressions, and bounded counting, by Ibis.

Declarations of this package (types, expressions) import nothing heavy; Ibis is imported when data is opened.
"""
