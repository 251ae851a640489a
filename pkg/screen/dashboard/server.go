// Package dashboard shows an overview of a cluster in a browser. The server renders the pages, and updates them with
// server-sent events.
//
// The command berth dashboard calls it. It only listens on the loopback interface, answers only requests with the token
// in its address, and changes nothing in the cluster.
package dashboard

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	_ "embed" // for style sheet and script
	"encoding/json"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/screen/svg"
)

const (
	// sampleEvery is the interval between points of the plots, and samples the number of points in an hour.
	sampleEvery, samples = 10 * time.Second, 361
	// refreshEvery is the shortest interval between updates of a page, and aliveEvery the longest.
	refreshEvery, aliveEvery = 2 * time.Second, 15 * time.Second
	// mostStreams is how many pages may follow the cluster at a time.
	mostStreams = 32
	// writeWithin bounds each write to a page, explainWithin an explanation, headersWithin reading the headers.
	writeWithin, explainWithin, headersWithin = 10 * time.Second, 2 * time.Minute, 5 * time.Second
	// explainColumns is the width of explanations.
	explainColumns = 120
	// mostHeaderBytes bounds a request; pages send none with a body.
	mostHeaderBytes = 16 << 10
)

//go:embed style.css
var style string

//go:embed live.js
var script string

// Server serves pages about one cluster.
type Server struct {
	source overview.Source
	token  string
	// hosts are the allowed Host headers, against DNS rebinding by pages of other sites.
	hosts []string
	mux   *http.ServeMux
	// streams has a value for each page that is being updated, explaining one while an explanation is computed.
	streams, explaining chan struct{}

	mu      sync.Mutex
	latest  *overview.Cluster
	at      time.Time
	history []sample
}

// New makes a server with a token of its own.
func New(source overview.Source) *Server {
	s := &Server{source: source, token: rand.Text(), mux: http.NewServeMux(), streams: make(chan struct{}, mostStreams),
		explaining: make(chan struct{}, 1)}
	s.mux.HandleFunc("GET /{$}", s.page)
	s.mux.HandleFunc("GET /node", s.node)
	s.mux.HandleFunc("GET /namespace", s.namespace)
	s.mux.HandleFunc("GET /explain", s.explain)
	s.mux.HandleFunc("GET /events", s.events)
	s.mux.HandleFunc("GET /style.css", static("text/css; charset=utf-8", svg.PageStyle+style))
	s.mux.HandleFunc("GET /", func(w http.ResponseWriter, r *http.Request) {
		s.problem(w, http.StatusNotFound, fmt.Sprintf("There is no page %q here.", r.URL.Path),
			"The link above leads to the cluster.")
	})
	s.mux.HandleFunc("GET /live.js", static("text/javascript; charset=utf-8", script))
	return s
}

// Serve serves on a listener of the loopback interface until ctx ends, and returns when all requests have ended. It
// calls ready with the address of the page, which can then be opened.
func (s *Server) Serve(ctx context.Context, listener net.Listener, ready func(address string)) error {
	address, ok := listener.Addr().(*net.TCPAddr)
	if !ok || !address.IP.IsLoopback() {
		return fmt.Errorf("%s is not an address of the loopback interface", listener.Addr())
	}
	for _, name := range []string{"127.0.0.1", "localhost", "[::1]"} {
		s.hosts = append(s.hosts, fmt.Sprintf("%s:%d", name, address.Port))
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	// Close of the HTTP server does not wait for the goroutines of connections, which read the source.
	var connections sync.WaitGroup
	server := &http.Server{
		Handler: s, ReadHeaderTimeout: headersWithin, ReadTimeout: headersWithin, IdleTimeout: time.Minute,
		MaxHeaderBytes: mostHeaderBytes,
		BaseContext:    func(net.Listener) context.Context { return ctx },
		ConnState: func(_ net.Conn, state http.ConnState) {
			switch state {
			case http.StateNew:
				connections.Add(1)
			case http.StateClosed:
				connections.Done()
			default: // the connection stays open; none is hijacked
			}
		},
	}
	var running sync.WaitGroup
	running.Go(func() { s.sampleUntil(ctx) })
	running.Go(func() {
		<-ctx.Done()
		_ = server.Close() // Shutdown would wait for event streams
	})
	ready(fmt.Sprintf("http://%s/%s/", listener.Addr(), s.token))
	err := server.Serve(listener)
	cancel()
	running.Wait()
	connections.Wait()
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return fmt.Errorf("serving the dashboard: %w", err)
}

// ServeHTTP refuses requests with another Host or without the token.
func (s *Server) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	header := w.Header()
	header.Set("Content-Security-Policy",
		"default-src 'none'; style-src 'self'; script-src 'self'; connect-src 'self'; img-src data:; form-action 'self'; "+
			"base-uri 'none'; frame-ancestors 'none'")
	header.Set("Referrer-Policy", "no-referrer") // the address contains the token
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Cache-Control", "no-store")
	known := slices.ContainsFunc(s.hosts, func(host string) bool { return strings.EqualFold(r.Host, host) })
	token, rest, whole := strings.Cut(strings.TrimPrefix(r.URL.Path, "/"), "/")
	if !known || subtle.ConstantTimeCompare([]byte(token), []byte(s.token)) != 1 {
		http.Error(w, "open the address that berth dashboard has printed, with its token", http.StatusForbidden)
		return
	}
	if !whole {
		http.Redirect(w, r, "/"+s.token+"/", http.StatusFound)
		return
	}
	inner := r.Clone(r.Context())
	inner.URL.Path, inner.URL.RawPath = "/"+rest, ""
	s.mux.ServeHTTP(w, inner)
}

func static(kind, content string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", kind)
		_, _ = w.Write([]byte(content)) // an error means that the browser has disconnected
	}
}

// cluster is the overview of all pages. It is cached for a moment.
func (s *Server) cluster() *overview.Cluster {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.latest == nil || time.Since(s.at) >= refreshEvery/2 {
		s.latest, s.at = s.source.Cluster(), time.Now()
	}
	return s.latest
}

func (s *Server) page(w http.ResponseWriter, r *http.Request) {
	s.write(w, http.StatusOK, "page", s.view(r.URL.Query()))
}

func (s *Server) write(w http.ResponseWriter, status int, name string, view any) {
	w.Header().Set("Content-Type", "text/html; charset=utf-8")
	w.WriteHeader(status)
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(writeWithin))
	if err := templates.ExecuteTemplate(w, name, view); err != nil && !errors.Is(err, net.ErrClosed) {
		// The status has been sent already; the browser shows a page that ends early.
		_, _ = w.Write([]byte("<p>The page could not be completed.</p>"))
	}
}

// events sends all parts of a page, then those that have changed, until the page is closed.
func (s *Server) events(w http.ResponseWriter, r *http.Request) {
	select {
	case s.streams <- struct{}{}:
		defer func() { <-s.streams }()
	default:
		http.Error(w, fmt.Sprintf("%d pages are open already", mostStreams), http.StatusServiceUnavailable)
		return
	}
	control := http.NewResponseController(w)
	w.Header().Set("Content-Type", "text/event-stream")
	ticker := time.NewTicker(refreshEvery)
	defer ticker.Stop()
	shown, last := map[string]string{}, time.Time{}
	for {
		changed, err := redrawn(shown, s.view(r.URL.Query()))
		if err != nil {
			return
		}
		if len(changed) > 0 || time.Since(last) >= aliveEvery {
			last = time.Now()
			data, err := json.Marshal(changed)
			if err != nil {
				return
			}
			_ = control.SetWriteDeadline(time.Now().Add(writeWithin))
			if _, err := fmt.Fprintf(w, "data: %s\n\n", data); err != nil {
				return
			}
			if err := control.Flush(); err != nil {
				return
			}
		}
		select {
		case <-r.Context().Done():
			return
		case <-ticker.C:
		}
	}
}

// redrawn renders the parts that differ from shown, and updates shown.
func redrawn(shown map[string]string, v *view) (map[string]string, error) {
	changed := map[string]string{}
	for _, part := range parts {
		var b strings.Builder
		if err := templates.ExecuteTemplate(&b, part, v); err != nil {
			return nil, fmt.Errorf("rendering the %s: %w", part, err)
		}
		if text := b.String(); shown[part] != text {
			shown[part], changed[part] = text, text
		}
	}
	return changed, nil
}
