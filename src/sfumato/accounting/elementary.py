"""What accounting assumes about single floats; apart from :mod:`sfumato.accounting.floats`, which needs NumPy."""

__all__ = ["ELEMENTARY", "UNIT"]

UNIT = 2.0**-53
"""Half the distance from 1 to the next float: the relative rounding of +, −, ×, / and √."""

ELEMENTARY = 8 * UNIT
"""Assumed: the relative error of exp, expm1, log and log1p of NumPy and of :mod:`math`, results below the normal floats
aside. Four units in the last place, which NumPy tests its vector loops for; C libraries stay below one or two."""
