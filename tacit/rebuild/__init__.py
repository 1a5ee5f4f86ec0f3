"""Learn everything again in a work tree, compare the result, and merge it."""
