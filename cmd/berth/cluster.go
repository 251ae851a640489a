package main

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/cli-runtime/pkg/genericclioptions"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/explain"
	"berth.dev/berth/pkg/progress"
)

// clusterFlags are the flags of kubectl that choose a cluster and who asks.
type clusterFlags struct{ *genericclioptions.ConfigFlags }

func newClusterFlags() clusterFlags {
	all := genericclioptions.NewConfigFlags(true)
	return clusterFlags{&genericclioptions.ConfigFlags{
		KubeConfig: all.KubeConfig, Context: all.Context, ClusterName: all.ClusterName, AuthInfoName: all.AuthInfoName,
		Namespace: all.Namespace, Timeout: all.Timeout, Impersonate: all.Impersonate, ImpersonateGroup: all.ImpersonateGroup,
	}}
}

// addTo adds the flags; without a namespace where a command is about the whole cluster.
func (f clusterFlags) addTo(cmd *cobra.Command, namespaced bool) {
	if !namespaced {
		f.Namespace = nil
	}
	f.AddFlags(cmd.Flags())
	if namespaced {
		if err := cmd.RegisterFlagCompletionFunc("namespace", f.completeNamespaces); err != nil {
			panic(err)
		}
	}
}

func (f clusterFlags) restConfig() (*rest.Config, error) {
	config, err := f.ToRESTConfig()
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	return config, nil
}

// currentNamespace is that of --namespace, else of the kubeconfig's context.
func (f clusterFlags) currentNamespace() string {
	if f.Namespace != nil && *f.Namespace != "" {
		return *f.Namespace
	}
	namespace, _, err := f.ToRawKubeConfigLoader().Namespace()
	if err != nil || namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// completionTimeout is how long a shell may be kept waiting, and completions how many names it is given.
const (
	completionTimeout = 2 * time.Second
	completions       = 500
)

func (f clusterFlags) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
	return f.complete(cmd.Context(), func(ctx context.Context, c kubernetes.Interface) (names []string, err error) {
		list, err := c.CoreV1().Namespaces().List(ctx, metav1.ListOptions{Limit: completions})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// completeTarget completes a kind, and after it the name of a pod.
func (f clusterFlags) completeTarget(cmd *cobra.Command, args []string, _ string) ([]string, cobra.ShellCompDirective) {
	switch {
	case len(args) == 0:
		return explain.Kinds(), cobra.ShellCompDirectiveNoFileComp
	case len(args) > 1 || args[0] != explain.KindPod:
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.complete(cmd.Context(), func(ctx context.Context, c kubernetes.Interface) (names []string, err error) {
		list, err := c.CoreV1().Pods(f.currentNamespace()).List(ctx, metav1.ListOptions{Limit: completions})
		if err != nil {
			return nil, err
		}
		for i := range list.Items {
			names = append(names, list.Items[i].Name)
		}
		return names, nil
	})
}

// complete asks the cluster; a cluster that cannot be reached offers nothing.
func (f clusterFlags) complete(ctx context.Context, list func(context.Context, kubernetes.Interface) ([]string, error)) ([]string, cobra.ShellCompDirective) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	config, err := f.restConfig()
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names, err := list(ctx, client)
	if err != nil {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// collector makes a collector of the cluster whose progress is shown on w: one line a kind, and on a terminal a line that
// counts while a long list is read.
func (f clusterFlags) collector(w io.Writer) (*dump.Collector, error) {
	config, err := f.restConfig()
	if err != nil {
		return nil, err
	}
	collector, err := dump.NewCollector(config)
	if err != nil {
		return nil, err
	}
	line, begin := progress.NewLine(w), time.Now()
	collector.Progress = func(resource string, objects int, done bool) {
		text := fmt.Sprintf("%5.1fs  %d %s", time.Since(begin).Seconds(), objects, resource)
		if done {
			line.Keep(text)
		} else {
			line.Show(text)
		}
	}
	return collector, nil
}

// in is the same cluster with another namespace.
func (f clusterFlags) in(namespace string) clusterFlags {
	return clusterFlags{&genericclioptions.ConfigFlags{
		KubeConfig: f.KubeConfig, Context: f.Context, ClusterName: f.ClusterName, AuthInfoName: f.AuthInfoName,
		Namespace: &namespace, Timeout: f.Timeout, Impersonate: f.Impersonate, ImpersonateGroup: f.ImpersonateGroup,
	}}
}
