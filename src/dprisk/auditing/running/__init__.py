"""Running an audit: the plan, the workers, the file that it goes on from."""
