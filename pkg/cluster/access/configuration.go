package access

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
)

// Configuration is the file of a scheduler configuration.
type Configuration struct {
	// Name is the path of the file, or the ConfigMap.
	Name    string
	Content []byte
}

// ErrNone is wrapped by errors that say why the configuration was not found.
var ErrNone = errors.New("the scheduler's configuration is not known")

// ConfigurationOf returns the configuration of a sandbox in one of the folders if it serves the API of the cluster,
// else the configuration that the cluster's scheduler mounts. The error wraps ErrNone if there is neither.
func ConfigurationOf(ctx context.Context, cluster *rest.Config, folders []string) (*Configuration, error) {
	if found, err := configurationOfSandbox(cluster.Host, folders); found != nil || err != nil {
		return found, err
	}
	client, err := kubernetes.NewForConfig(cluster)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return configurationOfCluster(ctx, client)
}

// configurationOfSandbox returns nil if no sandbox in the folders serves the API at that address and runs a scheduler.
func configurationOfSandbox(server string, folders []string) (*Configuration, error) {
	layout, running := SandboxAt(server, folders)
	if !running {
		return nil, nil
	}
	file := layout.SchedulerConfig()
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the sandbox's scheduler configuration: %w", err)
	}
	return &Configuration{Name: file, Content: content}, nil
}

// SandboxAt returns the sandbox in one of the folders that serves the API at that address, if it runs a scheduler.
func SandboxAt(server string, folders []string) (sandbox.Layout, bool) {
	for _, folder := range folders {
		state, err := sandbox.Layout(folder).ReadState()
		if err != nil {
			continue // most folders hold no sandbox
		}
		if address(state.Server) == address(server) && state.Scheduler != "" {
			return sandbox.Layout(folder), true
		}
	}
	return "", false
}

// SandboxFolders are the folders in which the sandbox of the kubeconfig in use may be.
func (f Flags) SandboxFolders() []string {
	return sandboxFolders(f.Kubeconfig().ConfigAccess().GetLoadingPrecedence())
}

// sandboxFolders are the folders of the kubeconfigs, and the default one.
func sandboxFolders(kubeconfigs []string) []string {
	var folders []string
	for _, path := range kubeconfigs {
		if path != "" {
			folders = append(folders, filepath.Dir(path))
		}
	}
	return append(folders, sandbox.DefaultDir)
}

func address(url string) string { return strings.TrimSuffix(url, "/") }

// schedulers selects the Deployments of the shipped manifests and of the chart.
const schedulers = "app.kubernetes.io/name=berth-scheduler"

// configurationOfCluster returns the configuration that the cluster's scheduler mounts. The error wraps ErrNone if it
// cannot be read.
func configurationOfCluster(ctx context.Context, client kubernetes.Interface) (*Configuration, error) {
	list, err := client.AppsV1().Deployments(metav1.NamespaceAll).List(ctx, metav1.ListOptions{LabelSelector: schedulers})
	if err != nil {
		return nil, fmt.Errorf("%w: listing Deployments: %w", ErrNone, err)
	}
	deployments := slices.DeleteFunc(list.Items, func(d appsv1.Deployment) bool { return configMapOf(&d) == "" })
	switch len(deployments) {
	case 0:
		return nil, fmt.Errorf("%w: no Deployment with the label %s mounts a ConfigMap", ErrNone, schedulers)
	case 1:
	default:
		// A Deployment without ready replicas does not count beside one that has some.
		slices.SortStableFunc(deployments, func(a, b appsv1.Deployment) int {
			return cmp.Compare(b.Status.ReadyReplicas, a.Status.ReadyReplicas)
		})
		if deployments[1].Status.ReadyReplicas > 0 {
			return nil, fmt.Errorf("%w: there are several schedulers, %s/%s and %s/%s among them", ErrNone,
				deployments[0].Namespace, deployments[0].Name, deployments[1].Namespace, deployments[1].Name)
		}
	}
	d := &deployments[0]
	found, err := client.CoreV1().ConfigMaps(d.Namespace).Get(ctx, configMapOf(d), metav1.GetOptions{})
	if err != nil {
		return nil, fmt.Errorf("%w: reading ConfigMap %s/%s: %w", ErrNone, d.Namespace, configMapOf(d), err)
	}
	name := "ConfigMap " + found.Namespace + "/" + found.Name
	content, ok := found.Data[configKey(found)]
	if !ok {
		return nil, fmt.Errorf("%w: %s has no key %s", ErrNone, name, configKey(found))
	}
	return &Configuration{Name: name, Content: []byte(content)}, nil
}

// configMapOf is the name of the ConfigMap that the Deployment's pods mount, empty if there is none.
func configMapOf(d *appsv1.Deployment) string {
	for i := range d.Spec.Template.Spec.Volumes {
		if source := d.Spec.Template.Spec.Volumes[i].ConfigMap; source != nil {
			return source.Name
		}
	}
	return ""
}

// shippedKey is the file's name in the shipped ConfigMap.
const shippedKey = "scheduler-config.yaml"

// configKey is the key of the configuration: the shipped one, or the only one of the ConfigMap.
func configKey(m *v1.ConfigMap) string {
	if _, shipped := m.Data[shippedKey]; shipped || len(m.Data) != 1 {
		return shippedKey
	}
	for key := range m.Data {
		return key
	}
	return shippedKey
}
