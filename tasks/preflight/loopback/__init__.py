"""A loopback model server: the Messages API, scripted, for rehearsals and tests of real agent CLIs."""
