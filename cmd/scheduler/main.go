// Command berth-scheduler is kube-scheduler 1.37 recompiled with Berth's plugins. Every stock flag and plugin works as
// in the original; which plugins act on a pod is decided by the profile that its schedulerName selects.
package main

import (
	"os"
	_ "time/tzdata" // price windows name time zones, and the image has no others

	// Public authorities, for a Prometheus over TLS: the image has no others.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/component-base/cli"

	// The stock command's metrics of requests and of the leader election, by which plugins know whether they may write.
	_ "k8s.io/component-base/metrics/prometheus/clientgo"
	_ "k8s.io/component-base/metrics/prometheus/version"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}
