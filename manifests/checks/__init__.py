"""Checks of a node's own files: one file a check, a folder a layer."""
