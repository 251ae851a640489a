// Command berth-node-agent runs on every GPU node and tells the scheduler what only the node knows: which GPUs are in use,
// how they are connected, and which are healthy.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth-node-agent: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}
