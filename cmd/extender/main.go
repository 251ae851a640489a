// Command berth-extender answers the kube-scheduler of a cluster over HTTP: which nodes suit a pod with GPUs, and
// which of them are best and cheapest.
package main

import (
	"os"

	// Public authorities, for a Prometheus over TLS: the image has no others.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/screen/command"
)

func main() {
	command.DropLinkedFlags()
	status := command.Run(newCommand(), os.Stderr)
	klog.Flush()
	os.Exit(status)
}
