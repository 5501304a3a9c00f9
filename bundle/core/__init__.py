"""The pure part: records in, records out. Opens no file, reads no clock, no network."""
