"""Where results are kept: one file a run, written whole; and arrays that runs share."""
