"""Checks of the Pods' address ranges; each is given a `snapshots.registry.cluster.Cluster`."""
