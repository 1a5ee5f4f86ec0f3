"""Extractors: one module for each kind of statement, with its rules, its prompt and its schema."""
