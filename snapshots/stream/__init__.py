"""A snapshot checked while it streams past, in little memory and without a disk."""
