package controlplane

import (
	"fmt"
	"math/rand/v2"
	"net"
)

// Free ports are taken from below those that the kernel gives to connections, which may take one between its choice and its
// use, and from below those of Services of type NodePort.
const (
	firstFreePort = 20000
	lastFreePort  = 29999
	portAttempts  = 200
)

// ports of one sandbox on 127.0.0.1.
type ports struct {
	etcd, api, scheduler int
}

// choosePorts takes the given port, or a free one, for the API server and free ones for the rest. All are held until
// all are chosen, so that no two are the same.
func choosePorts(api int) (ports, error) {
	var chosen ports
	for _, p := range []struct {
		want int
		into *int
	}{{api, &chosen.api}, {0, &chosen.etcd}, {0, &chosen.scheduler}} {
		listener, err := listen(p.want)
		if err != nil {
			return chosen, err
		}
		defer listener.Close()
		*p.into = listener.Addr().(*net.TCPAddr).Port
	}
	return chosen, nil
}

// listen takes the port, or any free one for 0.
func listen(port int) (net.Listener, error) {
	attempts := 1
	if port == 0 {
		attempts = portAttempts
	}
	var failure error
	for range attempts {
		candidate := port
		if port == 0 {
			candidate = firstFreePort + rand.IntN(lastFreePort-firstFreePort+1) //nolint:gosec // not a secret
		}
		listener, err := net.Listen("tcp", loopbackAddress(candidate))
		if err == nil {
			return listener, nil
		}
		failure = err
	}
	return nil, fmt.Errorf("taking a port: %w", failure)
}
