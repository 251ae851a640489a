package extender

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"
	"time"
)

// errCutOff is what a caller is told whose request was still being read when there was no memory left for others.
var errCutOff = errors.New("other requests needed the memory, and this one had been sent for the longest time")

// bodies are the requests that are held in memory. What counts is what has arrived of them, so that a caller that is
// slow to send takes no more than it has sent. When there is too much, the request is cut off that has been read for
// the longest time.
type bodies struct {
	most int64

	mu   sync.Mutex
	held int64
	// reading are those that have not arrived as a whole, in the order in which they began.
	reading []*body
}

type body struct {
	of   *bodies
	held int64
	// end ends the reading.
	end    func()
	cutOff bool
}

// read returns the request's body, which is held until release.
func (b *bodies) read(w http.ResponseWriter, r *http.Request, limit int64) (content io.Reader, release func(),
	err error) {
	one := &body{of: b, end: func() {
		// It fails only where nothing is read from a connection.
		_ = http.NewResponseController(w).SetReadDeadline(time.Now())
	}}
	b.mu.Lock()
	b.reading = append(b.reading, one)
	b.mu.Unlock()
	var buffer bytes.Buffer
	_, err = io.Copy(io.MultiWriter(one, &buffer), http.MaxBytesReader(w, r.Body, limit))
	b.mu.Lock()
	b.done(one)
	if one.cutOff {
		err = requestError{http.StatusServiceUnavailable, fmt.Errorf("reading the request: %w", errCutOff)}
	}
	b.mu.Unlock()
	return &buffer, one.release, err
}

// Write counts what has arrived.
func (one *body) Write(p []byte) (int, error) {
	b := one.of
	b.mu.Lock()
	defer b.mu.Unlock()
	if one.cutOff {
		return 0, errCutOff
	}
	one.held += int64(len(p))
	b.held += int64(len(p))
	for b.held > b.most {
		longest := b.reading[0]
		b.done(longest)
		b.held -= longest.held
		longest.held, longest.cutOff = 0, true
		if longest == one {
			return 0, errCutOff
		}
		longest.end()
	}
	return len(p), nil
}

// done notes that a request is not read any more.
func (b *bodies) done(one *body) {
	b.reading = slices.DeleteFunc(b.reading, func(other *body) bool { return other == one })
}

func (one *body) release() {
	one.of.mu.Lock()
	defer one.of.mu.Unlock()
	one.of.held -= one.held
	one.held = 0
}

// failing is a reader that fails.
type failing struct{ error }

func (f failing) Read([]byte) (int, error) { return 0, f.error }
