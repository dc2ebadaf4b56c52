"""What a report rests on: the stored runs, read once, and what single runs tell."""
