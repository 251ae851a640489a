package dump

import (
	"context"
	"fmt"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/cluster/inputs"
)

// pageSize is how many objects are asked for at a time: it bounds what server and client hold at once.
const pageSize = 500

// expiredPages is how often the list of one kind is begun again when the server has forgotten the version that its
// first pages came from.
const expiredPages = 3

// Collector lists a live cluster. It only reads.
type Collector struct {
	// Progress, when set, is told after each page how many objects of a kind there are so far and, once done is set,
	// in all.
	Progress func(resource string, objects int, done bool)

	discovery discovery.DiscoveryInterfaceWithContext
	dynamic   dynamic.Interface
}

// NewCollector makes a collector for the cluster of a client configuration.
func NewCollector(config *rest.Config) (*Collector, error) {
	config = rest.CopyConfig(config)
	if config.QPS == 0 {
		// Pages follow each other; the default of 5 requests a second would be all the time that a dump takes.
		config.QPS, config.Burst = 50, 100
	}
	disco, err := discovery.NewDiscoveryClientForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the discovery client: %w", err)
	}
	dyn, err := dynamic.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making the API client: %w", err)
	}
	return &Collector{discovery: disco, dynamic: dyn}, nil
}

// Header begins the header of a dump of the cluster. It is the first request, and so the one that says that the cluster
// cannot be reached.
func (c *Collector) Header(ctx context.Context, now time.Time) (Header, error) {
	info, err := c.discovery.ServerVersionWithContext(ctx)
	if err != nil {
		return Header{}, fmt.Errorf("asking the API server for its version: %w", err)
	}
	return Header{Format: Format, Version: Version, Taken: now.UTC().Truncate(time.Second), Kubernetes: info.GitVersion},
		nil
}

// Collect calls add with what a dump keeps of every object, kind by kind, and returns which kinds were left out, a
// line each: those that the server does not serve and those that the user may not list. Without nodes and pods there is
// no dump, so there that is an error.
func (c *Collector) Collect(ctx context.Context, add func(runtime.Object) error) (leftOut []string, err error) {
	served, err := c.served(ctx)
	if err != nil {
		return nil, err
	}
	listed := map[schema.GroupResource]bool{}
	for _, kind := range inputs.Kinds() {
		if kind.Foreign && (!served[kind.GroupVersionResource] || listed[kind.GroupResource()]) {
			continue
		}
		name := kind.GroupResource().String()
		listed[kind.GroupResource()] = true
		var listErr error
		if served[kind.GroupVersionResource] {
			listErr = c.list(ctx, kind, add)
		} else {
			listErr = fmt.Errorf("the server does not serve it in %s", kind.GroupVersion())
		}
		switch {
		case listErr == nil:
		case ctx.Err() != nil:
			return leftOut, ctx.Err()
		case kind.Required || served[kind.GroupVersionResource] && !apierrors.IsForbidden(listErr) &&
			!apierrors.IsNotFound(listErr):
			return leftOut, fmt.Errorf("listing %s: %w", name, listErr)
		default:
			leftOut = append(leftOut, name+": "+strings.Join(strings.Fields(listErr.Error()), " "))
		}
	}
	return leftOut, nil
}

// served returns the resources that the server has. An API of another project that does not answer does not matter.
func (c *Collector) served(ctx context.Context) (map[schema.GroupVersionResource]bool, error) {
	_, lists, err := c.discovery.ServerGroupsAndResourcesWithContext(ctx)
	if err != nil && !discovery.IsGroupDiscoveryFailedError(err) {
		return nil, fmt.Errorf("asking the API server what it serves: %w", err)
	}
	served := map[schema.GroupVersionResource]bool{}
	for _, list := range lists {
		gv, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			continue
		}
		for i := range list.APIResources {
			served[gv.WithResource(list.APIResources[i].Name)] = true
		}
	}
	return served, nil
}

func (c *Collector) list(ctx context.Context, kind inputs.Kind, add func(runtime.Object) error) error {
	resource := kind.GroupResource().String()
	// A list that is begun again meets objects that are in the dump already.
	seen := map[string]bool{}
	options := metav1.ListOptions{Limit: pageSize}
	for restarts := 0; ; {
		page, err := c.dynamic.Resource(kind.GroupVersionResource).List(ctx, options)
		if apierrors.IsResourceExpired(err) && restarts < expiredPages {
			restarts++
			options.Continue = ""
			continue
		}
		if err != nil {
			return err
		}
		for i := range page.Items {
			item := &page.Items[i]
			id := item.GetNamespace() + "/" + item.GetName()
			if seen[id] {
				continue
			}
			seen[id] = true
			kept, err := inputs.Keep(item)
			if err != nil {
				return err
			}
			if err := add(kept); err != nil {
				return err
			}
		}
		options.Continue = page.GetContinue()
		c.report(resource, len(seen), options.Continue == "")
		if options.Continue == "" {
			return nil
		}
	}
}

func (c *Collector) report(resource string, objects int, done bool) {
	if c.Progress != nil {
		c.Progress(resource, objects, done)
	}
}
