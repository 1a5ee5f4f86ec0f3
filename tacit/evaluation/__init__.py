"""How good search is: public question sets, a home's own questions, and the constants fitted on them."""
