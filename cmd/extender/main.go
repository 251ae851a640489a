// Command berth-extender answers the kube-scheduler of a cluster over HTTP: which nodes suit a pod with GPUs, which of them
// are best and cheapest, and, where it is told to, which devices the pod gets.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	// Public authorities, for a Prometheus over TLS: the image has no others.
	_ "golang.org/x/crypto/x509roots/fallback"
	"k8s.io/klog/v2"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	klog.Flush()
	if err != nil {
		fmt.Fprintln(os.Stderr, "berth-extender: "+strings.Join(strings.Fields(err.Error()), " "))
		os.Exit(1)
	}
}
