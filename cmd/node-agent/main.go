// Command berth-node-agent runs on every GPU node and tells the scheduler what only the node knows: which GPUs are in
// use, how they are connected, and which are healthy.
package main

import (
	"os"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/command"
)

func main() {
	command.DropLinkedFlags()
	status := command.Run(newCommand(), os.Stderr)
	klog.Flush()
	os.Exit(status)
}
