"""Works: what is more than a table of numbers, by form: studies, synthetic rows, models; each is one release."""
