package memapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Delivery says whether a request and its response arrive.
type Delivery int

// The server carries out a request whose response is lost, but not one that is lost itself. The client sees the same
// error.
const (
	Delivered Delivery = iota
	RequestLost
	ResponseLost
)

// Network makes the connection between the server and its clients slow and lossy. Its methods are called from any
// goroutine.
type Network interface {
	// Request returns the delays of a request that writes and of its response, and whether one of them is lost.
	Request(req *http.Request) (there, back time.Duration, delivery Delivery)
	// Event returns the delay of an event of a watch. Events stay in order.
	Event() time.Duration
}

// errLost is the error of a connection that ends without a response.
var errLost = errors.New("connection reset by peer")

// throughNetwork commits a write with the delays and losses of the network.
func (s *Server) throughNetwork(w *pendingWrite) (*http.Response, error) {
	there, back, delivery := s.Network.Request(w.req)
	if err := pause(w.req.Context(), there); err != nil {
		return nil, err
	}
	var response *http.Response
	var err error
	if delivery != RequestLost {
		response, err = s.commit(w)
	}
	if pauseErr := pause(w.req.Context(), back); pauseErr != nil {
		err = pauseErr
	} else if delivery != Delivered {
		err = errLost
	}
	if err != nil {
		if response != nil {
			_ = response.Body.Close()
		}
		return nil, err
	}
	return response, nil
}

func pause(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
