"""Checks that weigh cluster objects against the node's files; each is given a `Case`."""
