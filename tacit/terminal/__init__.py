"""What commands share: the options that many of them take, and how they print."""
