"""The terminal UI: shows what commands return, decides nothing."""
