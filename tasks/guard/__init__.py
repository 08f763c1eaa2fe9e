"""Guard: what a tool call would write, read from the call itself."""
