// Command berth-scheduler is kube-scheduler 1.37 recompiled with Berth's plugins. Every stock flag and plugin works as
// in the original; which plugins act on a pod is decided by the profile that its schedulerName selects.
package main

import (
	"os"
	_ "time/tzdata" // price windows name time zones, and the image has no others

	"k8s.io/component-base/cli"
)

func main() {
	os.Exit(cli.Run(newCommand()))
}
