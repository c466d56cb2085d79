"""Repairs, one file each: plans put together from steps of both halves."""
