"""Two sets of stored runs side by side, so that a change in a method shows as one in numbers."""
