"""What tests share: small tasks and methods, synthetic runs, processes, a browser."""
