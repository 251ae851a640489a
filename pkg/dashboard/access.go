package dashboard

import (
	"context"
	"crypto/sha256"
	"maps"
	"net/http"
	"slices"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"

	"berth.dev/berth/pkg/overview"
	"berth.dev/berth/pkg/tokens"
)

const (
	// rightsFor is how long the rights of a reader are not asked for again, and mostReaders how many readers are
	// remembered.
	rightsFor, mostReaders = 2 * time.Minute, 256
	// mostNamespaces is for how many namespaces a reader's rights are asked who may not list pods everywhere.
	mostNamespaces = 500
)

// reader says what the sender of a request may see.
type reader struct {
	// nodes says that he may list nodes: the map, the totals and the prices.
	nodes bool
	// all says that he may list pods everywhere; otherwise in namespaces.
	all        bool
	namespaces map[string]bool
}

// everything is the reader of the page on loopback, who sees what his own rights let berth read.
var everything = &reader{nodes: true, all: true}

func (r *reader) sees(namespace string) bool { return r.all || r.namespaces[namespace] }

// Access asks the API server who a reader is and what he may see: TokenReview and SubjectAccessReview.
type Access struct {
	client  kubernetes.Interface
	readers *utilcache.LRUExpireCache
}

// NewAccess makes an Access that asks through the client.
func NewAccess(client kubernetes.Interface) *Access {
	return &Access{client, utilcache.NewLRUExpireCache(mostReaders)}
}

// reader returns what the bearer of a token may see of the namespaces.
func (a *Access) reader(ctx context.Context, token string, namespaces []string) (*reader, error) {
	key := sha256.Sum256([]byte(token))
	if known, ok := a.readers.Get(key); ok {
		return known.(*reader), nil
	}
	user, err := tokens.UserOf(ctx, a.client, token)
	if err != nil {
		return nil, err
	}
	r := &reader{namespaces: map[string]bool{}}
	if r.nodes, err = a.mayList(ctx, user, "nodes", ""); err != nil {
		return nil, err
	}
	if r.all, err = a.mayList(ctx, user, "pods", ""); err != nil {
		return nil, err
	}
	if !r.all {
		for _, namespace := range namespaces[:min(len(namespaces), mostNamespaces)] {
			if r.namespaces[namespace], err = a.mayList(ctx, user, "pods", namespace); err != nil {
				return nil, err
			}
		}
	}
	a.readers.Add(key, r, rightsFor)
	return r, nil
}

func (a *Access) mayList(ctx context.Context, user *authenticationv1.UserInfo, resource, namespace string) (bool,
	error) {
	return tokens.May(ctx, a.client, user, authorizationv1.SubjectAccessReviewSpec{
		ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "list", Resource: resource, Namespace: namespace},
	})
}

// tokenCookie holds the token of a reader without a proxy. Browsers keep a cookie with this prefix to this host and to
// TLS.
const tokenCookie = "__Host-berth-token"

// tokenOf is the token that comes with a request: from a proxy or a script in the header, from a browser in the cookie.
func tokenOf(r *http.Request) string {
	if token := tokens.Bearer(r); token != "" {
		return token
	}
	if cookie, err := r.Cookie(tokenCookie); err == nil {
		return cookie.Value
	}
	return ""
}

// otherNamespaces stands for workloads that a reader may not see.
const otherNamespaces = "other namespaces"

// visible is what a reader may see of a cluster.
func visible(c *overview.Cluster, r *reader) *overview.Cluster {
	if r.all && r.nodes {
		return c
	}
	seen := *c
	seen.Jobs = kept(c.Jobs, func(j *overview.Job) bool { return r.sees(j.Namespace) })
	seen.Queue = kept(c.Queue, func(w *overview.Waiting) bool { return r.sees(w.Namespace) })
	seen.Gangs = kept(c.Gangs, func(g *overview.Gang) bool { return r.sees(g.Namespace) })
	seen.Queues = kept(c.Queues, func(q *overview.Queue) bool { return r.sees(q.Namespace) })
	seen.Namespaces = kept(c.Namespaces, func(n *overview.Namespace) bool { return r.sees(n.Name) })
	seen.Warnings = kept(c.Warnings,
		func(w *overview.Warning) bool { return w.Namespace == "" && r.nodes || r.sees(w.Namespace) })
	if !r.nodes {
		seen.Nodes, seen.Totals = []overview.Node{}, overview.Totals{}
		for i := range seen.Namespaces {
			seen.Totals.AllocatedMilliGPU += seen.Namespaces[i].MilliGPU
			seen.Totals.PendingPods += seen.Namespaces[i].PendingPods
		}
		seen.LeftOut = append(slices.Clone(c.LeftOut),
			"nodes: you may not list them, so map, totals and prices are not shown")
		return &seen
	}
	seen.Nodes = slices.Clone(c.Nodes)
	for i := range seen.Nodes {
		seen.Nodes[i].Use = hideOthers(seen.Nodes[i].Use, r)
	}
	return &seen
}

// hideOthers sums up what workloads have that the reader may not see.
func hideOthers(uses []overview.Use, r *reader) []overview.Use {
	shown, others := []overview.Use{}, int64(0)
	for _, u := range uses {
		if namespace, _, _ := strings.Cut(u.Workload, "/"); r.sees(namespace) {
			shown = append(shown, u)
		} else {
			others += u.MilliGPU
		}
	}
	if others > 0 {
		shown = append(shown, overview.Use{Workload: otherNamespaces, MilliGPU: others})
	}
	return shown
}

func kept[T any](list []T, keep func(*T) bool) []T {
	made := []T{}
	for i := range list {
		if keep(&list[i]) {
			made = append(made, list[i])
		}
	}
	return made
}

// namespacesOf are those that anything of the cluster is shown of.
func namespacesOf(c *overview.Cluster) []string {
	names := map[string]bool{}
	for i := range c.Namespaces {
		names[c.Namespaces[i].Name] = true
	}
	for i := range c.Jobs {
		names[c.Jobs[i].Namespace] = true
	}
	for i := range c.Queues {
		names[c.Queues[i].Namespace] = true
	}
	return slices.Sorted(maps.Keys(names))
}
