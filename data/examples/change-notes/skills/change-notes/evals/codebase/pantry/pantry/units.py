"""Units and how their amounts are rounded."""

WHOLE = ("pcs", "cans")


def rounded(amount: float, unit: str) -> float:
    """An amount as one can buy it."""
    if unit in WHOLE:
        return round(amount)
    return round(amount, 2)
