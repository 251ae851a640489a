package rights

import (
	"context"
	"errors"
	"strings"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/klog/v2"
)

const (
	// demandTimeout bounds one round of questions, so that an API server that hangs is asked again.
	demandTimeout = 30 * time.Second
	// demandRetry is the pause before the next round where the API server does not answer.
	demandRetry = 2 * time.Second
)

// Demand asks for the rights of the client's own account, until the API server answers or ctx ends. It returns an error
// if a vital right is missing, which names all that are and what needs them. Without others it logs the same.
func Demand(ctx context.Context, client kubernetes.Interface, needs []Need) error {
	logger := klog.FromContext(ctx)
	for said := false; ; {
		round, cancel := context.WithTimeout(ctx, demandTimeout)
		missing, err := Check(round, client, needs, nil)
		cancel()
		switch {
		case err == nil:
			return demanded(logger, missing)
		case ctx.Err() == nil && !said:
			said = true
			logger.Error(err, "Checking the account's rights failed, trying again")
		}
		select {
		case <-ctx.Done():
			return nil
		case <-time.After(demandRetry):
		}
	}
}

// demanded says what is missing, as an error if it is vital.
func demanded(logger klog.Logger, missing []Need) error {
	if len(missing) == 0 {
		return nil
	}
	vital := false
	var said []string
	for _, m := range joined(missing) {
		vital = vital || m.Weight == Vital
		said = append(said, m.String())
	}
	err := errors.New("the account lacks rights: " + strings.Join(said, "; ") +
		" (berth validate --cluster lists them, manifests/base/rbac.yaml grants them)")
	if vital {
		return err
	}
	logger.Error(err, "Parts of the configuration do not work")
	return nil
}
