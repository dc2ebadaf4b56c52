"""Functions with known graphs whose optimum is computed exactly; what tasks are made of."""
