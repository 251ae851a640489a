// Command berth-node-agent runs on every GPU node and tells the scheduler how the node's GPUs are connected.
package main

import (
	"os"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/screen/command"
)

func main() {
	command.DropLinkedFlags()
	status := command.Run(newCommand(), os.Stderr)
	klog.Flush()
	os.Exit(status)
}
