"""Certificates, keys and tokens of a control plane: read, told apart, expected, issued."""
