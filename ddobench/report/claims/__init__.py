"""Claims that stored runs can support or contradict, and their verdicts."""
