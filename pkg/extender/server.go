package extender

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"slices"
	"time"

	"k8s.io/apiserver/pkg/server/dynamiccertificates"
	"k8s.io/component-base/metrics/legacyregistry"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/metricsauth"
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
	certs    *certificates
}

// NewServer opens the port.
func NewServer(e *Extender, s Serving) (*Server, error) {
	certs, err := newCertificates(s)
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
	verbs := e.Handler(s.Within)
	if s.ClientCAFile != "" {
		verbs = verifiedOnly(verbs, s.ClientNames)
	}
	mux := http.NewServeMux()
	mux.Handle("/", verbs)
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("GET /readyz", func(w http.ResponseWriter, _ *http.Request) {
		if err := e.Ready(); err != nil {
			http.Error(w, err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ok")
	})
	mux.Handle("GET /metrics", metrics)
	server := &Server{listener: listener, certs: certs, http: &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		ReadTimeout:       s.Within,
		// The answer to a request that used all of its time must still be written.
		WriteTimeout:   2 * s.Within,
		IdleTimeout:    2 * time.Minute,
		MaxHeaderBytes: 64 << 10,
	}}
	if certs != nil {
		server.http.TLSConfig = certs.config
	}
	return server, nil
}

// Addr is where the server listens.
func (s *Server) Addr() net.Addr { return s.listener.Addr() }

// Run answers requests until the context ends, and returns when those that were being answered are.
func (s *Server) Run(ctx context.Context) error {
	logger := klog.FromContext(ctx)
	// Requests keep the logger of the server and outlive its context.
	s.http.BaseContext = func(net.Listener) context.Context { return context.WithoutCancel(ctx) }
	if s.certs != nil {
		s.certs.reload(ctx)
	}
	failed := make(chan error, 1)
	go func() {
		if s.certs != nil {
			failed <- s.http.ServeTLS(s.listener, "", "")
		} else {
			failed <- s.http.Serve(s.listener)
		}
	}()
	select {
	case err := <-failed:
		return fmt.Errorf("serving: %w", err)
	case <-ctx.Done():
	}
	stopping, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownWithin)
	defer cancel()
	if err := s.http.Shutdown(stopping); err != nil {
		logger.Error(err, "Requests were cut off")
		err = s.http.Close()
		if err != nil {
			logger.Error(err, "Closing connections failed")
		}
	}
	if err := <-failed; !errors.Is(err, http.ErrServerClosed) {
		return fmt.Errorf("serving: %w", err)
	}
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

// certificates are those of a server, read again when the files change.
type certificates struct {
	config     *tls.Config
	controller *dynamiccertificates.DynamicServingCertificateController
	pair       *dynamiccertificates.DynamicCertKeyPairContent
	clientCA   *dynamiccertificates.DynamicFileCAContent
}

// newCertificates returns nil for plain HTTP.
func newCertificates(s Serving) (*certificates, error) {
	if s.CertFile == "" {
		return nil, nil
	}
	pair, err := dynamiccertificates.NewDynamicServingContentFromFiles("serving", s.CertFile, s.KeyFile)
	if err != nil {
		return nil, fmt.Errorf("reading the server's certificate: %w", err)
	}
	c := &certificates{pair: pair,
		config: &tls.Config{MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}}}
	base := c.config.Clone()
	var authorities dynamiccertificates.CAContentProvider
	if s.ClientCAFile != "" {
		if c.clientCA, err = dynamiccertificates.NewDynamicCAContentFromFile("client-ca", s.ClientCAFile); err != nil {
			return nil, fmt.Errorf("reading the authorities of clients: %w", err)
		}
		authorities, base.ClientAuth = c.clientCA, tls.VerifyClientCertIfGiven
	}
	c.controller = dynamiccertificates.NewDynamicServingCertificateController(base, authorities, pair, nil, nil)
	if err := c.controller.RunOnce(); err != nil {
		return nil, fmt.Errorf("using the server's certificate: %w", err)
	}
	c.config.GetConfigForClient = c.controller.GetConfigForClient
	return c, nil
}

// reload follows the files until the context ends.
func (c *certificates) reload(ctx context.Context) {
	c.pair.AddListener(c.controller)
	go c.pair.Run(ctx, 1)
	if c.clientCA != nil {
		c.clientCA.AddListener(c.controller)
		go c.clientCA.Run(ctx, 1)
	}
	go c.controller.Run(1, ctx.Done())
}
