package main

import (
	"errors"
	"fmt"
	"net"
	"net/http"
	"syscall"
)

// whereClusters says how to name or to get a cluster.
const whereClusters = "name a cluster with --kubeconfig or --context, or start a local one with `berth up`"

// reaching says what to do when nothing answers at the address of the API server.
type reaching struct{ next http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (r reaching) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if unreachable(err) {
		return response, fmt.Errorf("%w; %s", err, whereClusters)
	}
	return response, err
}

// unreachable says whether nothing listens at an address, or it has no such host.
func unreachable(err error) bool {
	var host *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &host)
}
