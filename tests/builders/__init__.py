"""Makes what tests judge: node trees laid as kubeadm lays them, then broken on purpose."""
