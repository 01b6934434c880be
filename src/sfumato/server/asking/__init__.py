"""Asking: from a form or SQL to a question, its price and the error to expect, before anything is charged."""
