"""Reading recipes and adding up what they need."""

from pantry.units import rounded

Item = tuple[float, str, str]


def parse(text: str) -> list[Item]:
    """The ingredients of a recipe file: amount, unit, name."""
    items = []
    for line in text.splitlines():
        line = line.partition("#")[0].strip()
        if line:
            amount, unit, name = line.split(maxsplit=2)
            items.append((float(amount), unit, name))
    return items


def shopping_list(items: list[Item], servings: int = 4) -> list[Item]:
    """What to buy for a number of servings, equal ingredients added up, in the order they first appear."""
    total: dict[tuple[str, str], float] = {}
    for amount, unit, name in items:
        total[unit, name] = total.get((unit, name), 0.0) + amount * servings / 4
    return [(rounded(amount, unit), unit, name) for (unit, name), amount in total.items()]
