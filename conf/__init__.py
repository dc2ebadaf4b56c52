"""Hydra configuration; one choice is one small file."""
