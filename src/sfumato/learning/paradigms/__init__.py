"""Ways of learning that couple units, each with the sensitivity that it really has."""
