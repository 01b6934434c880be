"""Reports: words, pictures and checks made from releases alone."""
