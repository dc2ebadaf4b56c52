"""Models stacked over seeds: networks and their training, products, least squares."""
