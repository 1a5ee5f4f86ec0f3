"""Measuring search quality: public question sets, a home's own questions, and fitted constants."""
