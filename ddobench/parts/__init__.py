"""The parts of methods, and the pipeline that combines them."""
