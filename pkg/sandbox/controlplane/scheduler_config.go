package controlplane

import (
	"cmp"
	"fmt"
	"os"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/manifests"
	"berth.dev/berth/pkg/sandbox"
)

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

// schedulerConfig returns the given configuration with the path of the kubeconfig, which kube-scheduler only reads from
// its configuration file. It decodes to a generic map, so that the scheduler reports errors in the configuration.
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
	election, _ := config["leaderElection"].(map[string]any)
	if elect, ok := election["leaderElect"].(bool); ok {
		lease.elect = elect
	}
	name, _ := election["resourceName"].(string)
	namespace, _ := election["resourceNamespace"].(string)
	lease.name, lease.namespace = cmp.Or(name, lease.name), cmp.Or(namespace, lease.namespace)
	out, err := yaml.Marshal(config)
	if err != nil {
		return nil, lease, fmt.Errorf("encoding the scheduler configuration: %w", err)
	}
	return out, lease, nil
}
