"""Use cases, one file each: take values, return values, print nothing."""
