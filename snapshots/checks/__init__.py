"""Checks of etcd's data and of the cluster objects in it: one file a check, a folder a layer."""
