"""The pipeline stages, one folder each, in the order in which data passes through them."""
