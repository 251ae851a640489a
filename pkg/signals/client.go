package signals

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/prometheus/client_golang/api"
	prometheusv1 "github.com/prometheus/client_golang/api/prometheus/v1"
	prometheusconfig "github.com/prometheus/common/config"
	"github.com/prometheus/common/model"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/apis/config"
)

// client asks one Prometheus server, with a bound on the time and on the size of each answer.
type client struct {
	http    *http.Client
	api     prometheusv1.API
	timeout time.Duration
	// server is the host of the URL, for logs and metrics.
	server string
}

// newClient reads the TLS files and makes no connection.
func newClient(args *config.Prometheus) (*client, error) {
	httpConfig := httpClientConfig(args)
	if err := httpConfig.Validate(); err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", args.URL, err)
	}
	transport, err := prometheusconfig.NewRoundTripperFromConfig(httpConfig, "berth",
		prometheusconfig.WithUserAgent("berth-scheduler"))
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", args.URL, err)
	}
	httpClient := &http.Client{
		Transport: &boundedTransport{next: transport, maxMiB: int64(*args.MaxResponseMiB)},
		// A redirect is nearly always a login page; following it would turn a clear status into an unreadable answer.
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
	apiClient, err := api.NewClient(api.Config{Address: args.URL, Client: httpClient})
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", args.URL, err)
	}
	address, err := url.Parse(args.URL)
	if err != nil {
		return nil, fmt.Errorf("configuring the client of %s: %w", args.URL, err)
	}
	return &client{
		http:    httpClient,
		api:     prometheusv1.NewAPI(apiClient),
		timeout: args.Timeout.Duration,
		server:  address.Host,
	}, nil
}

func httpClientConfig(args *config.Prometheus) prometheusconfig.HTTPClientConfig {
	c := prometheusconfig.DefaultHTTPClientConfig
	c.FollowRedirects = false
	if args.BearerTokenFile != "" {
		c.Authorization = &prometheusconfig.Authorization{CredentialsFile: args.BearerTokenFile}
	}
	if auth := args.BasicAuth; auth != nil {
		c.BasicAuth = &prometheusconfig.BasicAuth{Username: auth.Username, PasswordFile: auth.PasswordFile}
	}
	if tls := args.TLS; tls != nil {
		c.TLSConfig = prometheusconfig.TLSConfig{
			CAFile:     tls.CAFile,
			CertFile:   tls.CertFile,
			KeyFile:    tls.KeyFile,
			ServerName: tls.ServerName,
		}
	}
	return c
}

// vector asks for an instant vector, as of the server's own clock. Samples older than lookback are not considered.
func (c *client) vector(ctx context.Context, query string, lookback time.Duration) (model.Vector, error) {
	value, err := c.query(ctx, query, lookback)
	if err != nil {
		return nil, err
	}
	vector, ok := value.(model.Vector)
	if !ok {
		return nil, fmt.Errorf("reading the answer: a %s came instead of a vector", typeOf(value))
	}
	if slices.Contains(vector, nil) {
		return nil, errNullSample
	}
	return vector, nil
}

// matrix asks for the range that query ends with, as of the server's own clock.
func (c *client) matrix(ctx context.Context, query string, lookback time.Duration) (model.Matrix, error) {
	value, err := c.query(ctx, query, lookback)
	if err != nil {
		return nil, err
	}
	return matrixOf(value)
}

var errNullSample = errors.New("reading the answer: null came instead of a sample")

func typeOf(value model.Value) string {
	if value == nil {
		return "answer without a result"
	}
	return value.Type().String()
}

func (c *client) query(ctx context.Context, query string, lookback time.Duration) (model.Value, error) {
	ctx, cancel := context.WithTimeoutCause(ctx, c.timeout, fmt.Errorf("no answer within %s", c.timeout))
	defer cancel()
	value, warnings, err := c.api.Query(ctx, query, time.Time{},
		prometheusv1.WithTimeout(c.timeout), prometheusv1.WithLookbackDelta(lookback))
	if err != nil {
		if cause := context.Cause(ctx); cause != nil {
			err = cause
		}
		return nil, fmt.Errorf("querying %s: %w", c.server, shortened(err))
	}
	if len(warnings) > 0 {
		klog.FromContext(ctx).V(4).Info("Prometheus warns about a query", "server", c.server, "query", query, "warnings",
			warnings)
	}
	return value, nil
}

// maxErrorBytes bounds what a server can put into the log: its error is a part of its answer.
const maxErrorBytes = 512

func shortened(err error) error {
	text := err.Error()
	if len(text) <= maxErrorBytes {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxErrorBytes], "") + "…")
}

// close lets go of the connections that are kept open between queries.
func (c *client) close() { c.http.CloseIdleConnections() }

// boundedTransport ends the reading of an answer that is larger than it may be, so that a wrong or hostile server
// cannot fill the scheduler's memory.
type boundedTransport struct {
	next   http.RoundTripper
	maxMiB int64
}

// RoundTrip sends the request and bounds the answer.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	response.Body = &boundedBody{ReadCloser: response.Body, left: t.maxMiB << 20, maxMiB: t.maxMiB}
	return response, nil
}

// CloseIdleConnections closes those of the transport beneath.
func (t *boundedTransport) CloseIdleConnections() {
	if closer, ok := t.next.(interface{ CloseIdleConnections() }); ok {
		closer.CloseIdleConnections()
	}
}

type boundedBody struct {
	io.ReadCloser
	left   int64
	maxMiB int64
}

func (b *boundedBody) Read(p []byte) (int, error) {
	if b.left < 0 {
		return 0, b.tooLarge()
	}
	// One byte more than is allowed tells an answer of exactly the limit from a larger one.
	if int64(len(p)) > b.left+1 {
		p = p[:b.left+1]
	}
	n, err := b.ReadCloser.Read(p)
	b.left -= int64(n)
	if b.left < 0 && (err == nil || errors.Is(err, io.EOF)) {
		return n, b.tooLarge()
	}
	return n, err
}

func (b *boundedBody) tooLarge() error {
	return fmt.Errorf("reading the answer: larger than maxResponseMiB (%d MiB)", b.maxMiB)
}
