#!/bin/sh
# Labels GPU nodes by their instance type, for clusters without NVIDIA's GPU feature discovery, and adds the short label
# gpu-type to all. Run it as often as you like: a label that a node has already is left as it is.
set -eu

label() {
  instance_type=$1
  shift
  for pair in "$@"; do
    kubectl label nodes -l "node.kubernetes.io/instance-type=$instance_type,!${pair%%=*}" "$pair"
  done
}

label p5.48xlarge   gpu-type=H100 gpu-generation=h100 gpu-memory-gb=80 gpu-interconnect=nvlink
label p4de.24xlarge gpu-type=A100 gpu-generation=a100 gpu-memory-gb=80 gpu-interconnect=nvlink
label g6.12xlarge   gpu-type=L4   gpu-memory-gb=24
label g4dn.12xlarge gpu-type=T4   gpu-memory-gb=16
