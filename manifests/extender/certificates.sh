#!/usr/bin/env bash
# Makes an authority, and certificates for the extender's Service and for the scheduler that asks it, in the current
# folder: manifests/extender/certificates.sh [NAMESPACE]. Prints the command that makes the Secret of them.
set -euo pipefail
namespace=${1:-kube-system}

openssl req -x509 -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -days 3650 \
  -subj /CN=berth-extender-ca -keyout ca.key -out ca.crt
sign() { # the files' name, the common name
  openssl req -newkey ec -pkeyopt ec_paramgen_curve:P-256 -nodes -subj "/CN=$2" -keyout "$1.key" -out "$1.csr"
  openssl x509 -req -in "$1.csr" -CA ca.crt -CAkey ca.key -CAcreateserial -days 365 -out "$1.crt" \
    -extfile <(echo "subjectAltName=DNS:berth-extender.$namespace.svc")
  rm "$1.csr"
}
sign tls "berth-extender.$namespace.svc"
sign scheduler system:kube-scheduler
rm -f ca.srl

echo "kubectl -n $namespace create secret generic berth-extender-tls --from-file=tls.crt --from-file=tls.key --from-file=ca.crt"
