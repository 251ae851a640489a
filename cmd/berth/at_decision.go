package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/url"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/decisions"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/runningconfig"
)

// explainPast explains what the scheduler remembers.
func (f *explainFlags) explainPast(ctx context.Context, target explain.Target, out, progress io.Writer) error {
	config, err := f.schedulerAt()
	if err != nil {
		return err
	}
	// A pod may be gone, and its decision is still known.
	pods := []decisions.Subject{{NamespacedName: types.NamespacedName{Namespace: f.namespace(), Name: target.Name}}}
	var found []*v1.Pod
	if target.Kind != explain.KindPod {
		objects, _, _, err := f.objects(ctx, progress)
		if err != nil {
			return err
		}
		if found, err = target.Find(objects, f.namespace()); err != nil {
			return badInput(err)
		}
		pods = nil
		for _, pod := range found {
			pods = append(pods, decisions.Subject{NamespacedName: types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name},
				UID: pod.UID})
		}
	}
	list, err := decisions.Ask(ctx, config)
	if err != nil {
		return err
	}
	explanation, err := explain.Past(list, pods...)
	if err != nil {
		return badInput(err)
	}
	return f.print(out, target.About(found, explanation.Pod.Name), explanation)
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
