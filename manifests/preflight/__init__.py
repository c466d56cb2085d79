"""What a host needs before kubeadm makes a node of it: one file an item, a folder a layer; the same form as checks.

`KUBEADM` names kubeadm's own preflight check of the same thing, where it has one.
"""
