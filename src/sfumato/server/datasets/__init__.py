"""The data that stewards declared: what is public about each, and where its rows lie."""
