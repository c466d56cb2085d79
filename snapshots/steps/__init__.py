"""What plans are made of, as far as it is about etcd: its data and its members."""
