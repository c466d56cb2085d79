"""Kubernetes objects in etcd: keys, envelope, protobuf, encryption at rest."""
