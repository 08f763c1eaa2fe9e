"""One parser for each form of event stream."""
