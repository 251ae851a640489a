package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"sync/atomic"
	"time"

	"k8s.io/client-go/util/cert"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/process/metricsauth"
)

// Serving says where and to whom an extender answers.
type Serving struct {
	// Address to listen on.
	Address string
	// CertFile and KeyFile are the server's certificate and its key; without them it speaks plain HTTP.
	CertFile, KeyFile string
	// ClientCAFile holds the authorities of callers' certificates. With it, verbs are answered only to callers with one.
	ClientCAFile string
	// ClientNames are the common names of the callers that are answered; empty: of any.
	ClientNames []string
	// Within is how long an answer may take.
	Within time.Duration
}

// shutdownWithin is how long requests that are being answered may take once the server is to stop.
const shutdownWithin = 15 * time.Second

// Server answers over HTTP.
type Server struct {
	listener net.Listener
	http     *http.Server
}

// NewServer opens the port.
func NewServer(e *Extender, s Serving) (*Server, error) {
	config, err := s.tlsConfig()
	if err != nil {
		return nil, err
	}
	metrics, err := metricsauth.New(e.api, legacyregistry.Handler())
	if err != nil {
		return nil, err
	}
	listener, err := net.Listen("tcp", s.Address)
	if err != nil {
		return nil, fmt.Errorf("listening for requests: %w", err)
	}
	if config != nil {
		listener = tls.NewListener(listener, config)
	}
	verbs := e.handler(s.Within)
	if s.ClientCAFile != "" {
		verbs = verifiedOnly(verbs, s.ClientNames)
	}
	mux := http.NewServeMux()
	mux.Handle("/", verbs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := e.ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", metrics)
	return &Server{listener: listener, http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       s.Within,
		// The answer to a request that used all of its time must still be written.
		WriteTimeout:   2 * s.Within,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}}, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run answers requests until the context ends, and returns when those that were being answered are.
func (s *Server) Run(ctx context.Context) error {
	// Requests keep the logger of the server and outlive its context.
	s.http.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	stopped := make(chan struct{})
	go func() {
		defer close(stopped)
		<-ctx.Done()
		stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
		defer cancel()
		if err := s.http.Shutdown(stopping); err != nil {
			klog.FromContext(ctx).Error(err, "Requests were cut off")
			_ = s.http.Close()
		}
	}()
	if err := s.http.Serve(s.listener); !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
	<-stopped
	return nil
}

// verifiedOnly answers only callers whose certificate was verified, and has one of these names if there are any. Probes
// come without one, and who reads metrics has a token.
func verifiedOnly(next http.Handler, names []string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.TLS == nil || len(r.TLS.VerifiedChains) == 0 {
			http.Error(w, "want a client certificate of an authority in --client-ca-file", http.StatusUnauthorized)
			return
		}
		name := r.TLS.VerifiedChains[0][0].Subject.CommonName
		if len(names) > 0 && !slices.Contains(names, name) {
			klog.FromContext(r.Context()).Info("Refused a caller", "commonName", name, "want", names, "from", r.RemoteAddr)
			http.Error(w, fmt.Sprintf("the client certificate names %q, want one of %q (--client-name)", name, names),
				http.StatusForbidden)
			return
		}
		next.ServeHTTP(w, r)
	})
}

// tlsConfig returns nil for plain HTTP. The files are read again for each connection, so that new certificates need no
// restart; while they cannot be used, those before count.
func (s *Serving) tlsConfig() (*tls.Config, error) {
	if s.CertFile == "" {
		return nil, nil
	}
	first, err := s.readCertificates()
	if err != nil {
		return nil, err
	}
	var last atomic.Pointer[tls.Config]
	last.Store(first)
	return &tls.Config{MinVersion: tls.VersionTLS12, GetConfigForClient: func(*tls.ClientHelloInfo) (*tls.Config, error) {
		if now, err := s.readCertificates(); err == nil {
			last.Store(now)
		} else {
			klog.Background().Error(err, "Going on with the certificates before")
		}
		return last.Load(), nil
	}}, nil
}

func (s *Serving) readCertificates() (*tls.Config, error) {
	pair, err := tls.LoadX509KeyPair(s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the server's certificate: %w", err)
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"},
		Certificates: []tls.Certificate{pair}}
	if s.ClientCAFile == "" {
		return config, nil
	}
	if config.ClientCAs, err = cert.NewPool(s.ClientCAFile); err != nil {
		return nil, fmt.Errorf("reading the authorities of clients: %w", err)
	}
	// Probes come without a certificate, and who reads metrics has a token.
	config.ClientAuth = tls.VerifyClientCertIfGiven
	return config, nil
}
