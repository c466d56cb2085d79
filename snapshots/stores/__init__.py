"""Where backups are kept: one interface, one module a store."""
