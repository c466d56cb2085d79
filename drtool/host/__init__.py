"""The machine. Nothing else touches files outside a store, processes, systemd, the CRI or the clock."""
