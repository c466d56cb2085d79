"""Checks over the Kubernetes objects in etcd; each is given a `snapshots.registry.cluster.Cluster`."""
