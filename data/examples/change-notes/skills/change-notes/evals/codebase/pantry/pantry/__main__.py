"""The command line of pantry."""

import argparse
from pathlib import Path

from pantry.shopping import parse, shopping_list


def main() -> None:
    """Print the shopping list of a recipe file."""
    parser = argparse.ArgumentParser(prog="pantry")
    parser.add_argument("recipes", type=Path)
    parser.add_argument("--servings", type=int, default=4)
    parser.add_argument("--legacy", action="store_true", help="print the list as version 1 did")
    arguments = parser.parse_args()
    items = shopping_list(parse(arguments.recipes.read_text("utf-8")), arguments.servings)
    separator = "\t" if arguments.legacy else " "
    for amount, unit, name in items:
        print(f"{amount:g}", unit, name, sep=separator)


if __name__ == "__main__":
    main()
