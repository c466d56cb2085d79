"""The machine below Kubernetes: its kernel, disks, runtime and users."""
