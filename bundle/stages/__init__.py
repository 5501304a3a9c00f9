"""The stages: each reads files, calls the pure core, and writes files."""
