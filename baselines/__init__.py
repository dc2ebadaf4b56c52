"""Methods; one file is one method, readable top to bottom."""
