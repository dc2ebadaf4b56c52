"""The parts of which methods are put together, and the pipeline that does it."""
