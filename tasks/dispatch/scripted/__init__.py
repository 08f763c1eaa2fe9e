"""The bundled agent CLI: it carries out a script instead of asking a model."""
