// Package metricsauth lets callers read metrics only if the API server allows it, by a TokenReview and a
// SubjectAccessReview, as the scheduler does.
//
// The extender and the node agent call it: they have no other use for the generic API server that does it for the
// scheduler. It remembers for a while who was allowed, and never who was refused.
package metricsauth

import (
	"context"
	"crypto/sha256"
	"fmt"
	"net/http"
	"strings"
	"time"

	authenticationv1 "k8s.io/api/authentication/v1"
	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	utilcache "k8s.io/apimachinery/pkg/util/cache"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
)

const (
	// keptFor is how long an allowed caller is remembered, and mostTokens how many are.
	keptFor    = 2 * time.Minute
	mostTokens = 64
	// askWithin bounds the reviews for one request.
	askWithin = 10 * time.Second
)

// guard is the handler before next.
type guard struct {
	client  kubernetes.Interface
	allowed *utilcache.LRUExpireCache
	next    http.Handler
}

// New returns a handler that passes requests on to next if the caller may get their path. Its reviews have their own
// rate limit, so that callers without rights do not slow the program's other requests.
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
	if status, refusal := g.refuse(ctx, r); status != http.StatusOK {
		http.Error(w, refusal, status)
		return
	}
	g.next.ServeHTTP(w, r)
}

// refuse returns StatusOK if the caller may get the path, and else the status and why not.
func (g *guard) refuse(ctx context.Context, r *http.Request) (status int, why string) {
	kind, token, _ := strings.Cut(r.Header.Get("Authorization"), " ")
	if token = strings.TrimSpace(token); token == "" || !strings.EqualFold(kind, "Bearer") {
		return http.StatusUnauthorized, "want the header Authorization: Bearer TOKEN, with a token of the API server"
	}
	unanswered := func(err error) (int, string) {
		klog.FromContext(ctx).Error(err, "Checking who may read metrics failed", "from", r.RemoteAddr)
		return http.StatusServiceUnavailable, "the API server does not say whether you may read this"
	}
	key := sha256.Sum256([]byte(r.URL.Path + "\n" + token))
	if _, ok := g.allowed.Get(key); ok {
		return http.StatusOK, ""
	}
	review, err := g.client.AuthenticationV1().TokenReviews().Create(ctx, &authenticationv1.TokenReview{
		Spec: authenticationv1.TokenReviewSpec{Token: token},
	}, metav1.CreateOptions{})
	if err != nil {
		return unanswered(fmt.Errorf("asking whose token it is: %w", err))
	}
	if !review.Status.Authenticated {
		return http.StatusUnauthorized, "the API server does not know the token"
	}
	user := &review.Status.User
	ask := authorizationv1.SubjectAccessReviewSpec{
		NonResourceAttributes: &authorizationv1.NonResourceAttributes{Path: r.URL.Path, Verb: "get"},
		User:                  user.Username, UID: user.UID, Groups: user.Groups,
		Extra: map[string]authorizationv1.ExtraValue{},
	}
	for name, values := range user.Extra {
		ask.Extra[name] = authorizationv1.ExtraValue(values)
	}
	answer, err := g.client.AuthorizationV1().SubjectAccessReviews().Create(ctx,
		&authorizationv1.SubjectAccessReview{Spec: ask}, metav1.CreateOptions{})
	if err != nil {
		return unanswered(fmt.Errorf("asking for the rights of %s: %w", user.Username, err))
	}
	if !answer.Status.Allowed {
		return http.StatusForbidden, fmt.Sprintf(
			"%s may not get %s: want the right to the nonResourceURL, as the ClusterRole berth-metrics-reader gives it",
			user.Username, r.URL.Path)
	}
	g.allowed.Add(key, struct{}{}, keptFor)
	return http.StatusOK, ""
}
