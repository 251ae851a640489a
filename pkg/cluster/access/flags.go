// Package access connects commands to a cluster: it binds and completes kubectl's flags for cluster and user, adds
// advice to the errors when no cluster is named or answers, and finds the configuration of the cluster's scheduler.
//
// The commands that read a cluster call it. cli-runtime has the same flags, but would link all of kustomize. It never
// writes the kubeconfig.
package access

import (
	"context"
	"errors"
	"fmt"
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
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// Flags are the flags of one command.
type Flags struct {
	rules     *clientcmd.ClientConfigLoadingRules
	overrides *clientcmd.ConfigOverrides
}

// NewFlags returns flags that are not bound to a command yet.
func NewFlags() Flags {
	rules := clientcmd.NewDefaultClientConfigLoadingRules()
	rules.DefaultClientConfig = &clientcmd.DefaultClientConfig
	return Flags{rules: rules, overrides: &clientcmd.ConfigOverrides{}}
}

// AddTo adds the flags, with --namespace if namespaced is set. If the command has a flag --cluster of its own,
// kubectl's is left out.
func (f Flags) AddTo(cmd *cobra.Command, namespaced bool) {
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

// Kubeconfig is the one that the flags choose. It is read at the first use.
func (f Flags) Kubeconfig() clientcmd.ClientConfig {
	return clientcmd.NewNonInteractiveDeferredLoadingClientConfig(f.rules, f.overrides)
}

// RESTConfig is the client configuration for the cluster that the flags choose.
func (f Flags) RESTConfig() (*rest.Config, error) {
	config, err := f.Kubeconfig().ClientConfig()
	if clientcmd.IsEmptyConfig(err) {
		return nil, fmt.Errorf("%s has no cluster: %s", strings.Join(f.rules.GetLoadingPrecedence(), ", "), whereClusters)
	}
	if err != nil {
		return nil, fmt.Errorf("reading the kubeconfig: %w", err)
	}
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return reaching{next} })
	return config, nil
}

// Client makes a client of the cluster that the flags choose.
func (f Flags) Client() (kubernetes.Interface, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client: %w", err)
	}
	return client, nil
}

// Namespace is that of --namespace, else of the kubeconfig's context.
func (f Flags) Namespace() string {
	namespace, _, err := f.Kubeconfig().Namespace()
	if err != nil || namespace == "" {
		return metav1.NamespaceDefault
	}
	return namespace
}

// GivenNamespace is that of --namespace, empty without one.
func (f Flags) GivenNamespace() string { return f.overrides.Context.Namespace }

// ContextName is that of --context, else of the kubeconfig's context.
func (f Flags) ContextName() string {
	if f.overrides.CurrentContext != "" {
		return f.overrides.CurrentContext
	}
	if config, err := f.Kubeconfig().RawConfig(); err == nil {
		return config.CurrentContext
	}
	return ""
}

// completionTimeout is how long a shell waits for completions, and completions the number of names that it gets.
const (
	completionTimeout = 2 * time.Second
	completions       = 500
)

func (f Flags) completeNamespaces(cmd *cobra.Command, _ []string, _ string) ([]string,
	cobra.ShellCompDirective) {
	return f.Names(cmd.Context(), v1.SchemeGroupVersion.WithResource("namespaces"), ""), cobra.ShellCompDirectiveNoFileComp
}

// Names asks the cluster for the names of objects. Without an answer there are none.
func (f Flags) Names(ctx context.Context, resource schema.GroupVersionResource,
	namespace string) (names []string) {
	if ctx == nil {
		ctx = context.Background()
	}
	ctx, cancel := context.WithTimeout(ctx, completionTimeout)
	defer cancel()
	config, err := f.RESTConfig()
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

// In is the same cluster with another namespace.
func (f Flags) In(namespace string) Flags {
	overrides := *f.overrides
	overrides.Context.Namespace = namespace
	return Flags{rules: f.rules, overrides: &overrides}
}

// whereClusters is the advice of errors about a missing cluster.
const whereClusters = "name a cluster with --kubeconfig or --context, or start a local one with `berth up`"

// reaching adds advice to the error when nothing answers at the address of the API server.
type reaching struct{ next http.RoundTripper }

// RoundTrip is part of http.RoundTripper.
func (r reaching) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := r.next.RoundTrip(request)
	if Unreachable(err) {
		return response, fmt.Errorf("%w; %s", err, whereClusters)
	}
	return response, err
}

// Unreachable reports whether an error says that nothing listens at an address, or that the host does not exist.
func Unreachable(err error) bool {
	var host *net.DNSError
	return errors.Is(err, syscall.ECONNREFUSED) || errors.As(err, &host)
}

// Complete offers names from the kubeconfig that the command would use.
func Complete(names func(*clientcmdapi.Config) []string) cobra.CompletionFunc {
	return func(cmd *cobra.Command, _ []string, _ string) ([]string, cobra.ShellCompDirective) {
		rules := clientcmd.NewDefaultClientConfigLoadingRules()
		if flag := cmd.Flags().Lookup("kubeconfig"); flag != nil {
			rules.ExplicitPath = flag.Value.String()
		}
		config, err := rules.Load()
		if err != nil {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return names(config), cobra.ShellCompDirectiveNoFileComp
	}
}
