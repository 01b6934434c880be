"""The service: pages and an API over everything that is built, for people who do not write Python."""
