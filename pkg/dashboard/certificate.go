package dashboard

import (
	"crypto/tls"
	"fmt"
	"os"

	"k8s.io/client-go/util/cert"
)

// Certificate is that of the files, read again at each handshake, so that a renewed one is used, or one of its own.
func Certificate(certFile, keyFile string) (func(*tls.ClientHelloInfo) (*tls.Certificate, error), error) {
	load := func() (*tls.Certificate, error) {
		pair, err := tls.LoadX509KeyPair(certFile, keyFile)
		return &pair, err
	}
	if certFile == "" {
		host, err := os.Hostname()
		if err != nil {
			return nil, fmt.Errorf("asking for the name of the host: %w", err)
		}
		own, key, err := cert.GenerateSelfSignedCertKey(host, nil, nil)
		if err != nil {
			return nil, fmt.Errorf("making a certificate: %w", err)
		}
		pair, err := tls.X509KeyPair(own, key)
		load = func() (*tls.Certificate, error) { return &pair, err }
	}
	if _, err := load(); err != nil {
		return nil, err
	}
	return func(*tls.ClientHelloInfo) (*tls.Certificate, error) { return load() }, nil
}
