"""Training across sites: one vote and one charge for a whole run, and a secure sum of whole numbers in each round."""
