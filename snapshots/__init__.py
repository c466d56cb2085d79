"""etcd's data: take it, keep it, prove it, put it back."""
