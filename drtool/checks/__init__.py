"""Checks that weigh a node's files against etcd's data: one file a check, a folder a layer."""
