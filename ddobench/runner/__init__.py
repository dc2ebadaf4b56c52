"""Carries out runs: what defines one, building it, running it, scoring it."""
