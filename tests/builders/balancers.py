"""Files of kube-vip, keepalived and haproxy as their own documentation has them, and lines that they print."""

from __future__ import annotations

KUBE_VIP = """
apiVersion: v1
kind: Pod
metadata:
  name: kube-vip
  namespace: kube-system
spec:
  containers:
  - args:
    - manager
    env:
    - name: vip_arp
      value: "true"
    - name: port
      value: "6443"
    - name: vip_interface
      value: eth0
    - name: vip_subnet
      value: "32"
    - name: cp_enable
      value: "true"
    - name: cp_namespace
      value: kube-system
    - name: vip_leaderelection
      value: "true"
    - name: vip_leasename
      value: plndr-cp-lock
    - name: address
      value: 192.0.2.100
    image: ghcr.io/kube-vip/kube-vip:v1.0.1
    imagePullPolicy: IfNotPresent
    name: kube-vip
    resources: {}
    securityContext:
      capabilities:
        add:
        - NET_ADMIN
        - NET_RAW
        drop:
        - ALL
    volumeMounts:
    - mountPath: /etc/kubernetes/admin.conf
      name: kubeconfig
  hostAliases:
  - hostnames:
    - kubernetes
    ip: 127.0.0.1
  hostNetwork: true
  volumes:
  - hostPath:
      path: /etc/kubernetes/admin.conf
    name: kubeconfig
status: {}
"""
ALIAS = "  hostAliases:\n  - hostnames:\n    - kubernetes\n    ip: 127.0.0.1\n"
MANIFEST = "/etc/kubernetes/manifests/kube-vip.yaml"
DEVICES = "Inter-|   Receive\n face |bytes\n    lo: 0 0\n  eth0: 0 0\n"
LOCK = (
    "E1214 22:59:00.000000 1 leaderelection.go:448] error retrieving resource lock kube-system/plndr-cp-lock: Get"
    ' "https://192.0.2.100:6443/apis/coordination.k8s.io/v1/namespaces/kube-system/leases/plndr-cp-lock": dial tcp'
    " 192.0.2.100:6443: connect: no route to host"
)
KEEPALIVED = """! Configuration File for keepalived
global_defs {
    router_id LVS_DEVEL
}
vrrp_script check_apiserver {
  script "/etc/keepalived/check_apiserver.sh"
  interval 3
  weight -2
  fall 10
  rise 2
}

vrrp_instance VI_1 {
    state MASTER
    interface eth0
    virtual_router_id 51
    priority 101
    virtual_ipaddress {
        192.0.2.100/32
    }
    track_script {
        check_apiserver
    }
}
"""
SCRIPT = """#!/bin/sh
errorExit() {
    echo "*** $*" 1>&2
    exit 1
}
curl -sfk --max-time 2 https://localhost:8443/healthz -o /dev/null || errorExit "Error GET https://localhost:8443/"
"""
HAPROXY = """
global
    log stdout format raw local0
defaults
    mode tcp
frontend apiserver
    bind *:8443
    mode tcp
    default_backend apiserverbackend
backend apiserverbackend
    option httpchk
    mode tcp
    balance roundrobin
    server cp-1 192.0.2.111:6443 check
    server cp-2 192.0.2.112:6443 check
    server cp-3 192.0.2.113:6443 check
"""
HUNG = (
    'E1214 22:59:00.000000 812 controller.go:195] "Failed to update lease" err="Put'
    ' \\"https://{host}:6443/apis/coordination.k8s.io/v1/namespaces/kube-node-lease/leases/cp-1\\":'
    ' dial tcp {address}:6443: i/o timeout"'
)
OLD_KUBE_VIP = """
localPeer:
  id: cp-1
  address: 192.0.2.111
  port: 10000
remotePeers:
- id: cp-2
  address: 192.0.2.112
  port: 10000
vip: 192.0.2.100
gratuitousARP: true
singleNode: false
startAsLeader: false
interface: eth0
loadBalancers:
- name: API Server Load Balancer
  type: tcp
  port: 8443
  bindToVip: true
  backends:
  - port: 6443
    address: 192.0.2.111
"""
