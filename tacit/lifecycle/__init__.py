"""What becomes of conversations: lines worth keeping, proposed and never written here."""
