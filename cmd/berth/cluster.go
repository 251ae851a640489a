package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/explain/subject"
	"berth.dev/berth/pkg/progress"
)

// clusterFlags are the flags of kubectl that choose a cluster and who asks. They are bound here and not by cli-runtime,
// which links all of kustomize.
type clusterFlags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

func newClusterFlags() clusterFlags {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	return clusterFlags{rules: rules, overrides: &clientcmd.ConfigOverrides{}}
}

// addTo adds the flags; without a namespace where a command is about the whole cluster. kubectl's --cluster gives way
// to a flag of that name that the command has already.
func (f clusterFlags) addTo(cmd *cobra.Command, namespaced bool) {
	flags, all := cmd.Flags(), clientcmd.RecommendedConfigOverrideFlags("")
	chosen := clientcmd.ConfigOverrideFlags{
		AuthOverrideFlags: clientcmd.AuthOverrideFlags{
			Impersonate: all.AuthOverrideFlags.Impersonate, ImpersonateGroups: all.AuthOverrideFlags.ImpersonateGroups,
		},
		ContextOverrideFlags: all.ContextOverrideFlags,
		CurrentContext:       all.CurrentContext,
		Timeout:              all.Timeout,
	}
	if !namespaced {
		chosen.ContextOverrideFlags.Namespace = clientcmd.FlagInfo{}
	}
	if flags.Lookup(clientcmd.FlagClusterName) != nil {
		chosen.ContextOverrideFlags.ClusterName = clientcmd.FlagInfo{}
	}
	flags.StringVar(&f.rules.ExplicitPath, clientcmd.RecommendedConfigPathFlag, "",
		"Path to the kubeconfig file to use for CLI requests.")
	clientcmd.BindOverrideFlags(f.overrides, flags, chosen)
	if namespaced {
		if err := cmd.RegisterFlagCompletionFunc(clientcmd.FlagNamespace, f.completeNamespaces); err != nil {
			panic(err)
		}
	}
}

// kubeconfig is what the flags choose. It is read when it is first asked.
func (f clusterFlags) kubeconfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, f.overrides)
}

func (f clusterFlags) restConfig() (*rest.Config, error) {
	config, err := f.kubeconfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%s has no cluster: %s", strings.Join(f.rules.GetLoadingPrecedence(), ", "), whereClusters)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return reaching{next} })
	return config, nil
}

// client reads the cluster that the flags choose.
func (f clusterFlags) client() (kubernetes.Interface, error) {
	config, err := f.restConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// currentNamespace is that of --namespace, else of the kubeconfig's context.
func (f clusterFlags) currentNamespace() string {
	if f.overrides.Context.Namespace != "" {
		return f.overrides.Context.Namespace
	}
	namespace, _, err := f.kubeconfig().Namespace()
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

func (f clusterFlags) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	return f.names(cmd.Context(), v1.SchemeGroupVersion.WithResource("namespaces"), ""), cobra.ShellCompDirectiveNoFileComp
}

// completeTarget completes a kind, and after it or behind a slash the name of an object of that kind.
func (f clusterFlags) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) == 0 {
		if strings.Contains(typed, "/") {
			return f.completeJoined(cmd, typed)
		}
		return subject.Kinds(), cobra.ShellCompDirectiveNoFileComp
	}
	resource, ok := subject.Resource(args[0])
	if !ok || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.names(cmd.Context(), resource, f.currentNamespace()), cobra.ShellCompDirectiveNoFileComp
}

// completeJoined completes the name in KIND/NAME.
func (f clusterFlags) completeJoined(cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, _ := strings.Cut(typed, "/")
	resource, ok := subject.Resource(kind)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := f.names(cmd.Context(), resource, f.currentNamespace())
	for i := range names {
		names[i] = kind + "/" + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// names asks the cluster for the names of objects; a cluster that cannot be reached has none.
func (f clusterFlags) names(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) (names []string) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	config, err := f.restConfig()
	if err != nil {
		return nil
	}
	client, err := metadata.NewForConfig(config)
	if err != nil {
		return nil
	}
	list, err := client.Resource(resource).Namespace(namespace).List(ctx, metav1.ListOptions{Limit: completions})
	if err != nil {
		return nil
	}
	for i := range list.Items {
		names = append(names, list.Items[i].Name)
	}
	return names
}

// collector makes a collector of the cluster whose progress is shown on w: one line a kind, and on a terminal a line
// that counts while a long list is read.
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
	overrides := *f.overrides
	overrides.Context.Namespace = namespace
	return clusterFlags{rules: f.rules, overrides: &overrides}
}

// whereClusters says how to name or to get a cluster.
const whereClusters = "name a cluster with --kubeconfig or --context, or start a local one with `berth up`"

// reaching says what to do when nothing answers at the address of the API server.
type reaching struct{ next http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (r reaching) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if unreachable(err) {
		return response, fmt.Errorf("%w; %s", err, whereClusters)
	}
	return response, err
}

// unreachable says whether nothing listens at an address, or it has no such host.
func unreachable(err error) bool {
	var host *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &host)
}
