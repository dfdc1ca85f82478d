"""What is run: anything that turns a record into an output."""
