"""Methods; one file is what makes one method itself."""
