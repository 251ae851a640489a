package memapi

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// Fate is what becomes of a request.
type Fate int

// A lost request is not carried out; one whose answer is lost is, and its sender cannot know.
const (
	Arrives Fate = iota
	RequestLost
	AnswerLost
)

// Weather makes the network between the server and its clients slow and lossy. Its methods are called from any
// goroutine.
type Weather interface {
	// Request says how long a request that writes is under way, how long its answer is, and whether one of them is lost.
	Request(req *http.Request) (there, back time.Duration, fate Fate)
	// Event says how long an event is under way to a watch. None overtakes another.
	Event() time.Duration
}

// errLost is what a client sees of a connection that ends without an answer.
var errLost = errors.New("connection reset by peer")

// underWeather carries a write through the weather.
func (s *Server) underWeather(w *pendingWrite) (*http.Response, error) {
	there, back, fate := s.Weather.Request(w.req)
	if err := pause(w.req.Context(), there); err != nil {
		return nil, err
	}
	var response *http.Response
	var err error
	if fate != RequestLost {
		response, err = s.commit(w)
	}
	if pauseErr := pause(w.req.Context(), back); pauseErr != nil {
		err = pauseErr
	} else if fate != Arrives {
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
