"""Addresses, ranges, networks and balancers, as a node's own files tell of them."""
