package signals

import (
	"context"
	"errors"
	"fmt"
	"net/http"
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

// maxAnswerBytes bounds one answer after decompression: enough for the readings of about 70,000 GPUs.
const maxAnswerBytes = 64 << 20

// client asks one Prometheus server, with a bound on the time and on the size of each answer.
type client struct {
	api     prometheusv1.API
	timeout time.Duration
	// server is the host of the URL, for logs and metrics.
	server string
	// connections stay open between queries.
	connections *http.Client
}

// newClient reads the TLS files and makes no connection.
func newClient(args *config.Prometheus) (*client, error) {
	httpConfig := httpClientConfig(args)
	if err := httpConfig.Validate(); err != nil {
		return nil, err
	}
	connections, err := prometheusconfig.NewClientFromConfig(httpConfig, "berth",
		prometheusconfig.WithUserAgent("berth-scheduler"))
	if err != nil {
		return nil, err
	}
	bounded := *connections
	bounded.Transport = boundedTransport{connections.Transport}
	apiClient, err := api.NewClient(api.Config{Address: args.URL, Client: &bounded})
	if err != nil {
		return nil, err
	}
	return &client{
		api: prometheusv1.NewAPI(apiClient), timeout: args.Timeout.Duration, server: apiClient.URL("", nil).Host,
		connections: connections,
	}, nil
}

func httpClientConfig(args *config.Prometheus) prometheusconfig.HTTPClientConfig {
	c := prometheusconfig.DefaultHTTPClientConfig
	// A redirect is nearly always a login page; following it would turn a clear status into an unreadable answer.
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

// query asks for an instant vector or, with a query that ends with a range, for a matrix, as of the server's own clock.
// Samples older than lookback are not considered.
func (c *client) query(ctx context.Context, query string, want model.ValueType,
	lookback time.Duration) (model.Value, error) {
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
	vector, _ := value.(model.Vector)
	matrix, _ := value.(model.Matrix)
	if value == nil || value.Type() != want || slices.Contains(vector, nil) || slices.Contains(matrix, nil) {
		return nil, fmt.Errorf("reading the answer of %s: want a %s of samples, got %T", c.server, want, value)
	}
	return value, nil
}

// maxErrorBytes bounds what a server can put into the log: its error is a part of its answer.
const maxErrorBytes = 512

func shortened(err error) error {
	if tooLarge := (*http.MaxBytesError)(nil); errors.As(err, &tooLarge) {
		return fmt.Errorf("the answer is larger than %d MiB", tooLarge.Limit>>20)
	}
	text := err.Error()
	if len(text) <= maxErrorBytes {
		return err
	}
	return errors.New(strings.ToValidUTF8(text[:maxErrorBytes], "") + "…")
}

// boundedTransport ends the reading of an answer that is larger than it may be, so that a wrong or hostile server
// cannot fill the scheduler's memory.
type boundedTransport struct{ http.RoundTripper }

// RoundTrip sends the request and bounds the answer.
func (t boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(request)
	if err == nil {
		response.Body = http.MaxBytesReader(nil, response.Body, maxAnswerBytes)
	}
	return response, err
}
