"""Functions with known graphs and exact optima, of which tasks are made."""
