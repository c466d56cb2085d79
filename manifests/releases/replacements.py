"""What replaces flags that are gone, where the program's own notice names no other flag.

From the release notes and the documentation of each change.
"""

_LOGGING = "the log of the container; klog's flags other than --v and --vmodule are gone"
_RUNTIME_CNI = "the CNI settings of the container runtime"
_RUNTIME = "--container-runtime-endpoint of containerd, CRI-O or cri-dockerd"

# (component, flag) -> what to use; component "" for all of them.
FLAG_REPLACEMENTS: dict[tuple[str, str], str] = {
    **{
        ("", name): _LOGGING
        for name in (
            "add-dir-header",
            "alsologtostderr",
            "log-backtrace-at",
            "log-dir",
            "log-file",
            "log-file-max-size",
            "logtostderr",
            "one-output",
            "skip-headers",
            "skip-log-headers",
            "stderrthreshold",
        )
    },
    ("", "address"): "--bind-address",
    ("", "port"): "--secure-port",
    ("", "insecure-bind-address"): "--bind-address",
    ("", "insecure-port"): "--secure-port",
    ("kube-apiserver", "cloud-provider"): "a cloud controller manager",
    ("kube-apiserver", "cloud-config"): "a cloud controller manager",
    ("kube-apiserver", "experimental-encryption-provider-config"): "--encryption-provider-config",
    ("kube-apiserver", "service-account-api-audiences"): "--api-audiences",
    ("kube-controller-manager", "experimental-cluster-signing-duration"): "--cluster-signing-duration",
    ("kube-controller-manager", "pod-eviction-timeout"): "tolerations of the NoExecute taints",
    ("kube-scheduler", "policy-config-file"): "--config with a KubeSchedulerConfiguration",
    ("kube-scheduler", "policy-configmap"): "--config with a KubeSchedulerConfiguration",
    ("kube-scheduler", "algorithm-provider"): "--config with a KubeSchedulerConfiguration",
    ("kubelet", "pod-infra-container-image"): "the sandbox image in the container runtime's configuration",
    ("kubelet", "container-runtime"): "--container-runtime-endpoint alone",
    ("kubelet", "dynamic-config-dir"): "--config",
    ("kubelet", "network-plugin"): _RUNTIME_CNI,
    ("kubelet", "network-plugin-mtu"): _RUNTIME_CNI,
    ("kubelet", "cni-bin-dir"): _RUNTIME_CNI,
    ("kubelet", "cni-cache-dir"): _RUNTIME_CNI,
    ("kubelet", "cni-conf-dir"): _RUNTIME_CNI,
    ("kubelet", "docker-endpoint"): _RUNTIME,
    ("kubelet", "experimental-dockershim-root-directory"): _RUNTIME,
    ("kubelet", "image-pull-progress-deadline"): _RUNTIME,
    ("etcd", "experimental-compact-hash-check-enabled"): "--feature-gates=CompactHashCheck=true",
    ("etcd", "experimental-initial-corrupt-check"): "--feature-gates=InitialCorruptCheck=true",
    ("etcd", "experimental-enable-lease-checkpoint"): "--feature-gates=LeaseCheckpoint=true",
    ("etcd", "experimental-enable-lease-checkpoint-persist"): "--feature-gates=LeaseCheckpointPersist=true",
    ("etcd", "experimental-stop-grpc-service-on-defrag"): "--feature-gates=StopGRPCServiceOnDefrag=true",
    ("etcd", "experimental-txn-mode-write-with-shared-buffer"): "--feature-gates=TxnModeWriteWithSharedBuffer=true",
    ("etcd", "enable-v2"): "the v3 API; the v2 API is gone",
    ("etcd", "log-package-levels"): "--log-level",
    ("etcd", "debug"): "--log-level=debug",
}

# Gates of kubeadm's own ClusterConfiguration.featureGates, which the programs themselves refuse.
KUBEADM_GATES = frozenset(
    {
        "ControlPlaneKubeletLocalMode",
        "EtcdLearnerMode",
        "NodeLocalCRISocket",
        "PublicKeysECDSA",
        "RootlessControlPlane",
        "UnversionedKubeletConfigMap",
        "UpgradeAddonsBeforeControlPlane",
        "WaitForAllControlPlaneComponents",
    }
)
