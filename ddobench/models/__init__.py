"""Stacked over seeds: networks, their training, matrix products, least squares."""
