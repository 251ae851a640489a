package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// Free ports are taken from below those that the kernel gives to connections, which may take one while no server has
// it, and from below those of Services of type NodePort.
const (
	firstFree = 20000
	lastFree  = 29999
	attempts  = 200
)

const (
	serving  = "127.0.0.1"
	reserved = "127.0.0.2"
)

// Port is a port of 127.0.0.1 that is reserved for a server that does not listen yet, or not all the time.
//
// A server that is told its port listens seconds after the port was chosen, and again after each restart. Meanwhile
// nothing would keep the port from others. So it is held on a second address of loopback, where nothing is served, and
// everything that chooses ports in this way needs both addresses. That of the server stays free.
type Port struct {
	// Number of the port.
	Number int
	holder net.Listener
}

// ReservePort reserves the port, or any free one for 0, until Close. Nothing listens on it yet.
func ReservePort(number int) (*Port, error) {
	if number != 0 {
		return reservePort(number)
	}
	var failure error
	for range attempts {
		r, err := reservePort(firstFree + rand.IntN(lastFree-firstFree+1)) //nolint:gosec // not a secret
		if err == nil {
			return r, nil
		}
		failure = err
	}
	return nil, failure
}

// reservePort asks for the address of the server last, and so not at all while the port is reserved: the server may be
// about to listen.
func reservePort(number int) (*Port, error) {
	holder, err := net.Listen("tcp", address(reserved, number))
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	r := &Port{Number: number, holder: holder}
	free, err := net.Listen("tcp", r.Address())
	if err != nil {
		return nil, errors.Join(fmt.Errorf("taking a port: %w", err), r.Close())
	}
	if err := free.Close(); err != nil {
		return nil, errors.Join(fmt.Errorf("freeing port %d: %w", number, err), r.Close())
	}
	return r, nil
}

// Address is where a server is to listen.
func (r *Port) Address() string { return address(serving, r.Number) }

// Close ends the reservation. A server that listens on the port goes on.
func (r *Port) Close() error {
	if err := r.holder.Close(); err != nil {
		return fmt.Errorf("ending the reservation of port %d: %w", r.Number, err)
	}
	return nil
}

func address(host string, number int) string { return net.JoinHostPort(host, fmt.Sprint(number)) }
