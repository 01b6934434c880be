"""The research environment of a service: projects that are drafted, programs that are tried and run, and their log."""
