"""What is looked for in conversations: one module for each kind, with its rules, its prompt and its
schema."""
