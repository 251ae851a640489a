package decisions

import (
	"context"
	"fmt"
	"io"
	"net/http"

	"k8s.io/client-go/rest"
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
