"""Language models, all of them reached by network."""
