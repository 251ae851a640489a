package decisions

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

// mostAnswerBytes bounds what is read of a scheduler.
const mostAnswerBytes = 256 << 20

// Ask returns what the scheduler that config reaches remembers.
func Ask(ctx context.Context, config *rest.Config) (*List, error) {
	body, err := get(ctx, config)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler for its decisions: %w", err)
	}
	return Read(body)
}

func get(ctx context.Context, config *rest.Config) ([]byte, error) {
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+Path, nil)
	if err != nil {
		return nil, fmt.Errorf("making a request: %w", err)
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, Untrusted(err)
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, mostAnswerBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the answer: %w", err)
	case len(body) > mostAnswerBytes:
		return nil, fmt.Errorf("reading the answer: it has more than %d bytes", mostAnswerBytes)
	case response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("%s; the right to get the non-resource URL %s is needed", response.Status, Path)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("%s", response.Status)
	}
	return body, nil
}

// answerWithin bounds how long an answer may take, all of it.
const answerWithin = time.Minute

// mostCABytes bounds a file of certificates.
const mostCABytes = 1 << 20

// Reach returns the configuration of a client of the scheduler at host (HOST:PORT), with the credentials of a client of
// the API server. The certificate of the scheduler is always verified: these credentials are not for an arbitrary
// server that answers there. caFile has the certificate, or that of the authority that signed it; without it the
// authority is that of the API server.
func Reach(api *rest.Config, host, caFile string) (*rest.Config, error) {
	config := rest.CopyConfig(api)
	config.Host = "https://" + host
	config.Insecure, config.ServerName = false, "" //nolint:forbidigo // whatever the kubeconfig says
	config.Timeout = answerWithin
	if caFile == "" {
		return config, nil
	}
	info, err := os.Stat(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's authority: %w", err)
	}
	if !info.Mode().IsRegular() || info.Size() > mostCABytes {
		return nil, fmt.Errorf("reading the scheduler's authority: %s is not a regular file of at most 1 MiB", caFile)
	}
	data, err := os.ReadFile(caFile)
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler's authority: %w", err)
	}
	if _, err := certutil.ParseCertsPEM(data); err != nil {
		return nil, fmt.Errorf("reading the scheduler's authority: %s has no certificate in PEM form: %w", caFile, err)
	}
	config.CAFile, config.CAData = "", data
	return config, nil
}

// Untrusted says what to do about a certificate that could not be verified; other errors it returns as they are.
func Untrusted(err error) error {
	var authority x509.UnknownAuthorityError
	var name x509.HostnameError
	switch {
	case errors.As(err, &authority):
		return fmt.Errorf(
			"%w; name the certificate of the scheduler, or of the authority that signed it, with --scheduler-ca", err)
	case errors.As(err, &name):
		return fmt.Errorf("%w; give --scheduler an address that the certificate is for", err)
	}
	return err
}
