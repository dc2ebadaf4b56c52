"""Two sets of stored runs compared, to see whether a change in the code changed numbers."""
