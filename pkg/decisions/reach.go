package decisions

import (
	"crypto/x509"
	"errors"
	"fmt"
	"os"
	"time"

	"k8s.io/client-go/rest"
	certutil "k8s.io/client-go/util/cert"
)

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
