"""The outside world: one module for each outside thing."""
