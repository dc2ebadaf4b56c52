"""Tables that people bring: reading them, what their columns are, and designs as numbers."""
