package controlplane

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

// followEvery is how often the user's configuration of the scheduler is read for changes.
const followEvery = time.Second

// readSchedulerConfig returns the user's configuration of the scheduler, or the shipped one.
func readSchedulerConfig(opts sandbox.Options) ([]byte, error) {
	var data []byte
	var err error
	if opts.SchedulerConfig == "" {
		data, err = manifests.Files.ReadFile(opts.ShippedConfig())
	} else {
		data, err = os.ReadFile(opts.SchedulerConfig)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the scheduler configuration: %w", err)
	}
	return data, nil
}

// schedulerConfig returns the configuration that the scheduler runs with: the given one as it is, with the path of the
// kubeconfig added, because kube-scheduler takes that from nowhere else once it has a file. It goes through a generic
// map, so whatever is wrong with it is left for the scheduler to find and name.
func schedulerConfig(data []byte, opts sandbox.Options) ([]byte, schedulerLease, error) {
	lease := schedulerLease{elect: true, namespace: metav1.NamespaceSystem, name: "kube-scheduler"}
	var config map[string]any
	if err := yaml.Unmarshal(data, &config); err != nil {
		return nil, lease, fmt.Errorf("scheduler configuration %s: %w", opts.SchedulerConfig, err)
	}
	if config == nil {
		return nil, lease, fmt.Errorf("scheduler configuration %s: it is empty", opts.SchedulerConfig)
	}
	connection, _ := config["clientConnection"].(map[string]any)
	if connection == nil {
		connection = map[string]any{}
		config["clientConnection"] = connection
	}
	connection["kubeconfig"] = sandbox.Layout(opts.Dir).SchedulerKubeconfig()
	if election, ok := config["leaderElection"].(map[string]any); ok {
		if elect, ok := election["leaderElect"].(bool); ok {
			lease.elect = elect
		}
		if name, ok := election["resourceName"].(string); ok && name != "" {
			lease.name = name
		}
		if namespace, ok := election["resourceNamespace"].(string); ok && namespace != "" {
			lease.namespace = namespace
		}
	}
	out, err := yaml.Marshal(config)
	if err != nil {
		return nil, lease, fmt.Errorf("encoding the scheduler configuration: %w", err)
	}
	return out, lease, nil
}

// writeSchedulerConfig writes the scheduler's file in one step, so that the scheduler never reads a part of it.
func writeSchedulerConfig(opts sandbox.Options, content []byte) error {
	file, next := sandbox.Layout(opts.Dir).SchedulerConfig(), sandbox.Layout(opts.Dir).NextSchedulerConfig()
	if err := errors.Join(os.WriteFile(next, content, 0o600), os.Rename(next, file)); err != nil {
		return fmt.Errorf("writing the scheduler configuration: %w", err)
	}
	return nil
}

// followSchedulerConfig brings changes of the user's file to the scheduler, which follows its own file, until ctx ends.
// The scheduler has the right to the lease that the first configuration named.
func followSchedulerConfig(ctx context.Context, opts sandbox.Options, known []byte, lease schedulerLease) {
	logger := klog.FromContext(ctx)
	ticker := time.NewTicker(followEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		data, err := readSchedulerConfig(opts)
		if err != nil || bytes.Equal(data, known) {
			continue // a file that is being replaced is there again in a moment
		}
		known = data
		content, named, err := schedulerConfig(data, opts)
		if err != nil {
			// The scheduler says what is wrong with it, and keeps the one before.
			content, named = data, lease
		}
		if named != lease {
			logger.Error(nil, "Another lease takes a new sandbox, keeping the scheduler's configuration", "file",
				opts.SchedulerConfig,
				"lease", klog.KRef(named.namespace, named.name))
			continue
		}
		if err := writeSchedulerConfig(opts, content); err != nil {
			logger.Error(err, "The change does not reach the scheduler", "file", opts.SchedulerConfig)
			continue
		}
		logger.Info("The scheduler's configuration has changed", "file", opts.SchedulerConfig)
	}
}
