"""Publishing: what stewards put on record for a release, and the static site of all that is published."""
