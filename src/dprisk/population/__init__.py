"""Many people at once: what one release tells about all records of a table."""
