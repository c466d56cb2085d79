from __future__ import annotations

from drtool.host.filesystems import filesystems, places

MOUNTS = """overlay / overlay rw 0 0
proc /proc proc rw 0 0
tmpfs /run tmpfs rw 0 0
/dev/vdb1 /var/lib/etcd xfs rw 0 0
/dev/vdc /mnt/two\\040words ext4 rw 0 0
tmpfs /var/lib/kubelet/pods/1234/volumes/kubernetes.io~projected/token tmpfs rw 0 0
shm /run/containerd/io.containerd.grpc.v1.cri/sandboxes/ab/shm tmpfs rw 0 0
nfs:/x /srv/nfs nfs4 rw 0 0
broken line
"""


def test_places_are_those_with_a_disk_of_their_own() -> None:
    assert places(MOUNTS) == ("/", "/run", "/var/lib/etcd", "/mnt/two words", "/srv/nfs")


def test_the_root_is_measured_and_absent_mounts_are_left_out() -> None:
    found = filesystems("nothing /no/such/mount ext4 rw 0 0\n")
    assert [item["mount"] for item in found] == ["/"]
    assert int(found[0]["size"]) > 0
    assert set(found[0]) == {"mount", "size", "free", "inodes", "inodesFree"}
