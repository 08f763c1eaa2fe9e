import unittest

from pantry.shopping import parse, shopping_list


class ShoppingList(unittest.TestCase):
    def test_adds_up_equal_ingredients(self) -> None:
        items = parse("1 kg flour\n2 pcs eggs\n0.5 kg flour  # for the crust\n")
        self.assertEqual(shopping_list(items), [(1.5, "kg", "flour"), (2, "pcs", "eggs")])

    def test_scales_to_the_servings(self) -> None:
        self.assertEqual(shopping_list([(1.0, "kg", "flour")], servings=2), [(0.5, "kg", "flour")])
