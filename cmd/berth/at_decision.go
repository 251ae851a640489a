package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/decisions"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/runningconfig"
)

// mostDecisionBytes bounds what is read of a scheduler.
const mostDecisionBytes = 256 << 20

// decided explains the decision that the scheduler remembers about the pod.
func (f *explainFlags) decided(ctx context.Context, pod types.NamespacedName, uid types.UID) (*explain.Explanation, error) {
	config, err := f.schedulerAt()
	if err != nil {
		return nil, err
	}
	client, err := rest.HTTPClientFor(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, config.Host+decisions.Path, nil)
	if err != nil {
		return nil, badInput(fmt.Errorf("--scheduler: %w", err))
	}
	response, err := client.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the scheduler for its decisions: %w", decisions.Untrusted(err))
	}
	defer response.Body.Close() //nolint:errcheck // nothing was written
	body, err := io.ReadAll(io.LimitReader(response.Body, mostDecisionBytes+1))
	switch {
	case err != nil:
		return nil, fmt.Errorf("reading the scheduler's decisions: %w", err)
	case len(body) > mostDecisionBytes:
		return nil, fmt.Errorf("reading the scheduler's decisions: the answer has more than %d bytes", mostDecisionBytes)
	case response.StatusCode == http.StatusForbidden || response.StatusCode == http.StatusUnauthorized:
		return nil, fmt.Errorf("asking the scheduler for its decisions: %s; the right to get the non-resource URL %s is needed", response.Status, decisions.Path)
	case response.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("asking the scheduler for its decisions: %s", response.Status)
	}
	list, err := decisions.Read(body)
	if err != nil {
		return nil, err
	}
	d := list.Of(pod, uid)
	if d == nil {
		return nil, badInput(fmt.Errorf("the scheduler does not remember a decision about pod %s: it keeps the last %d since its start, and only the replica that leads decides", pod, list.Kept))
	}
	return explain.Decided(d), nil
}

// schedulerAt is the address of the scheduler with the credentials of the kubeconfig.
func (f *explainFlags) schedulerAt() (*rest.Config, error) {
	config, err := f.cluster.restConfig()
	if err != nil {
		return nil, err
	}
	config = rest.CopyConfig(config)
	if f.scheduler == "" {
		layout, up := runningconfig.SandboxAt(config.Host, f.cluster.sandboxFolders())
		if !up {
			return nil, badInput(errors.New("--at-decision asks the scheduler itself: give its address with --scheduler, " +
				"for example https://127.0.0.1:10259 after kubectl port-forward to the replica that leads"))
		}
		state, err := layout.ReadState()
		if err != nil {
			return nil, err
		}
		config.Host = state.Scheduler
		return config, nil
	}
	address, err := url.Parse(f.scheduler)
	if err != nil || address.Scheme != "https" || address.Host == "" {
		return nil, badInput(fmt.Errorf("--scheduler: %q is not an address such as https://127.0.0.1:10259", f.scheduler))
	}
	reached, err := decisions.Reach(config, address.Host, f.schedulerCA)
	if err != nil {
		return nil, badInput(fmt.Errorf("--scheduler-ca: %w", err))
	}
	return reached, nil
}
