package sandbox

import (
	"errors"
	"fmt"
	"math/rand/v2"
	"net"
)

// The range of free ports is below that of outgoing connections, which may use a port while no server listens on it,
// and below that of NodePorts.
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
// A server listens seconds after its port was chosen, and again after each restart. Meanwhile the port is reserved by a
// listener on a second loopback address: ReservePort needs both addresses. The address of the server stays free.
type Port struct {
	// Number of the port.
	Number      int
	reservation net.Listener
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

// reservePort checks the address of the server last, and so never for a reserved port, on which a server may be about
// to listen.
func reservePort(number int) (*Port, error) {
	reservation, err := net.Listen("tcp", address(reserved, number))
	if err != nil {
		return nil, fmt.Errorf("reserving a port: %w", err)
	}
	r := &Port{Number: number, reservation: reservation}
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
	if err := r.reservation.Close(); err != nil {
		return fmt.Errorf("ending the reservation of port %d: %w", r.Number, err)
	}
	return nil
}

func address(host string, number int) string { return net.JoinHostPort(host, fmt.Sprint(number)) }
