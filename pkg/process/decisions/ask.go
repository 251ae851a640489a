package decisions

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"time"

	"k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
)

// answerWithin bounds the whole request.
const answerWithin = time.Minute

// Ask returns the decisions of the scheduler that config reaches.
func Ask(ctx context.Context, config *rest.Config) (*List, error) {
	config = rest.CopyConfig(config)
	config.NegotiatedSerializer, config.Timeout = scheme.Codecs, answerWithin
	client, err := rest.UnversionedRESTClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of the scheduler: %w", err)
	}
	body, err := client.Get().AbsPath(Path).Do(ctx).Raw()
	if unknown := (x509.UnknownAuthorityError{}); errors.As(err, &unknown) {
		err = fmt.Errorf("%w; name the certificate of the scheduler, or of the authority that signed it, with --scheduler-ca",
			err)
	}
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler for its decisions: %w", err)
	}
	return Read(body)
}

// Reach returns the configuration of a client of the scheduler at host (HOST:PORT), with the credentials of a client of
// the API server. The certificate of the scheduler is always verified, so that no other server receives these
// credentials. caFile has that certificate or its authority's; without it, the authority is that of the API server.
func Reach(api *rest.Config, host, caFile string) *rest.Config {
	config := rest.CopyConfig(api)
	config.Host = "https://" + host
	config.Insecure, config.ServerName = false, "" //nolint:forbidigo // whatever the kubeconfig says
	if caFile != "" {
		config.CAFile, config.CAData = caFile, nil
	}
	return config
}
