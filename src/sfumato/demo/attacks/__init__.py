"""Attacks on invented people: what names left out, k-anonymity, federation and regularisation do not protect."""
