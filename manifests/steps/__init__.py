"""What plans are made of, as far as it is about a node: its files, its programs, its certificates, its host."""
