package main

import (
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"sync"
	"time"
)

// proxy passes TCP connections on to one address, and cuts, delays or drops them as it is told.
type proxy struct {
	listener net.Listener
	target   string
	running  sync.WaitGroup

	mu     sync.Mutex
	random *rand.Rand
	conns  map[net.Conn]struct{}
	closed bool
	// maxDelay is the longest that a piece of data waits; dropPerMille of the pieces end their connection.
	maxDelay     time.Duration
	dropPerMille int
}

// newProxy listens on a free port of loopback.
func newProxy(target string, seed uint64) (*proxy, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("listening for the proxy: %w", err)
	}
	p := &proxy{listener: listener, target: target, conns: map[net.Conn]struct{}{},
		random: rand.New(rand.NewPCG(seed, 1))} //nolint:gosec // no secret
	p.running.Go(p.accept)
	return p, nil
}

func (p *proxy) address() string { return p.listener.Addr().String() }

func (p *proxy) accept() {
	for {
		conn, err := p.listener.Accept()
		if err != nil {
			return
		}
		p.running.Go(func() { p.serve(conn) })
	}
}

func (p *proxy) serve(down net.Conn) {
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	up, err := (&net.Dialer{}).DialContext(ctx, "tcp", p.target)
	if err != nil {
		_ = down.Close()
		return
	}
	if !p.keep(down, up) {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { p.copy(up, down) })
	both.Go(func() { p.copy(down, up) })
	both.Wait()
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.conns, down)
	delete(p.conns, up)
}

// keep remembers connections to be cut. It says no, and closes them, when the proxy is closed.
func (p *proxy) keep(conns ...net.Conn) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range conns {
		if p.closed {
			_ = conn.Close()
			continue
		}
		p.conns[conn] = struct{}{}
	}
	return !p.closed
}

// copy passes data on in one direction until one side ends, and ends the other.
func (p *proxy) copy(to, from net.Conn) {
	defer func() { _, _ = to.Close(), from.Close() }()
	buffer := make([]byte, 32<<10)
	for {
		n, err := from.Read(buffer)
		if n > 0 {
			delay, drop := p.fate()
			if drop {
				return
			}
			if delay > 0 {
				<-time.After(delay)
			}
			if _, err := to.Write(buffer[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}

// fate is what becomes of the next piece of data.
func (p *proxy) fate() (delay time.Duration, drop bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.maxDelay > 0 {
		delay = time.Duration(p.random.Int64N(int64(p.maxDelay)))
	}
	return delay, p.random.IntN(1000) < p.dropPerMille
}

// slow delays and drops from now on; zeros end it.
func (p *proxy) slow(maxDelay time.Duration, dropPerMille int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.maxDelay, p.dropPerMille = maxDelay, dropPerMille
}

// cut ends every connection and returns how many there were.
func (p *proxy) cut() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	for conn := range p.conns {
		_ = conn.Close()
	}
	return len(p.conns) / 2
}

// close ends the proxy and its connections.
func (p *proxy) close() {
	_ = p.listener.Close()
	p.mu.Lock()
	p.closed = true
	p.mu.Unlock()
	p.cut()
	p.running.Wait()
}
