// Package metricsauth answers requests for metrics only to those to whom the API server allows them, as the scheduler
// does: by a TokenReview and a SubjectAccessReview. The extender and the node agent have no other use for the server of
// Kubernetes that does it for the scheduler.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"errors"
	"fmt"
	"net/http"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/tokens"
)

const (
	// keptFor is how long the API server is not asked again about who was allowed, mostTokens of how many that is
	// remembered.
	keptFor    = 2 * time.Minute
	mostTokens = 64
	// askWithin bounds the questions about one request.
	askWithin = 10 * time.Second
)

// guard asks for the rights of callers.
type guard struct {
	client  kubernetes.Interface
	allowed *utilcache.LRUExpireCache
	next    http.Handler
}

// New lets those pass who may get the path of their request. The questions have a limit of their own: callers without
// any right cannot keep the program from its other requests.
func New(api *rest.Config, next http.Handler) (http.Handler, error) {
	own := rest.CopyConfig(api)
	own.RateLimiter, own.QPS, own.Burst = nil, rest.DefaultQPS, rest.DefaultBurst
	client, err := kubernetes.NewForConfig(own)
	if err != nil {
		return nil, fmt.Errorf("making the client that asks who may read metrics: %w", err)
	}
	return &guard{client, utilcache.NewLRUExpireCache(mostTokens), next}, nil
}

// ServeHTTP implements http.Handler.
func (g *guard) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	ctx, cancel := context.WithTimeout(r.Context(), askWithin)
	defer cancel()
	refusal, err := g.ask(ctx, r)
	switch {
	case errors.Is(err, tokens.ErrNone), errors.Is(err, tokens.ErrUnknown):
		http.Error(w, err.Error(), http.StatusUnauthorized)
	case err != nil:
		klog.FromContext(ctx).Error(err, "It cannot be found out who may read metrics", "from", r.RemoteAddr)
		http.Error(w, "the API server does not say whether you may read this", http.StatusServiceUnavailable)
	case refusal != "":
		http.Error(w, refusal, http.StatusForbidden)
	default:
		g.next.ServeHTTP(w, r)
	}
}

// ask returns why the caller may not get the path, empty if it may.
func (g *guard) ask(ctx context.Context, r *http.Request) (refusal string, err error) {
	token := tokens.Bearer(r)
	key := sha256.Sum256([]byte(r.URL.Path + "\n" + token))
	if _, ok := g.allowed.Get(key); ok {
		return "", nil
	}
	user, err := tokens.UserOf(ctx, g.client, token)
	if err != nil {
		return "", err
	}
	may, err := tokens.May(ctx, g.client, user, authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: "get"},
	})
	if err != nil {
		return "", err
	}
	if !may {
		return fmt.Sprintf(
			"%s may not get %s: want the right to the nonResourceURL, as the ClusterRole berth-metrics-reader gives it",
			user.Username, r.URL.Path), nil
	}
	g.allowed.Add(key, struct{}{}, keptFor)
	return "", nil
}
