"""Jobs: questions that wait for a worker process; each holds its slot until a deadline that does not depend on data."""
