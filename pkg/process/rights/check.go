package rights

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/util/workqueue"
)

// Account is whose rights are asked for.
type Account struct {
	User   string
	Groups []string
}

// ServiceAccount returns the account of a service account, with the groups that the API server gives to its tokens.
func ServiceAccount(namespace, name string) *Account {
	return &Account{
		User:   "system:serviceaccount:" + namespace + ":" + name,
		Groups: []string{"system:serviceaccounts", "system:serviceaccounts:" + namespace, "system:authenticated"},
	}
}

// parallelChecks bounds the requests that are under way at once.
const parallelChecks = 8

// Check asks the API server for every right that is needed, and returns those that are missing in the order of needs. A
// nil account stands for that of the client; to ask for another, the client needs the right to create
// subjectaccessreviews.
func Check(ctx context.Context, client kubernetes.Interface, needs []Need, account *Account) ([]Need, error) {
	allowed, failed := make([]bool, len(needs)), make([]error, len(needs))
	workqueue.ParallelizeUntil(ctx, parallelChecks, len(needs), func(i int) {
		allowed[i], failed[i] = review(ctx, client, needs[i], account)
	})
	// An API server that fails is not quoted a hundred times.
	if err := cmp.Or(ctx.Err(), cmp.Or(failed...)); err != nil {
		return nil, fmt.Errorf("asking the API server for rights: %w", err)
	}
	var missing []Need
	at := map[string]int{}
	for i, m := range needs {
		if allowed[i] {
			continue
		}
		if before, found := at[m.Right()]; found {
			missing[before] = missing[before].with(m)
			continue
		}
		at[m.Right()] = len(missing)
		missing = append(missing, m)
	}
	return missing, nil
}

// with joins what two needs say of one right.
func (n Need) with(other Need) Need {
	n.For = slices.Clone(n.For)
	for _, feature := range other.For {
		if !slices.Contains(n.For, feature) {
			n.For = append(n.For, feature)
		}
	}
	if !strings.Contains(n.Lost, other.Lost) {
		n.Lost += "; " + other.Lost
	}
	heaviest := []Weight{Vital, Feature, Conditional}
	n.Weight = heaviest[min(slices.Index(heaviest, n.Weight), slices.Index(heaviest, other.Weight))]
	return n
}

func review(ctx context.Context, client kubernetes.Interface, m Need, account *Account) (bool, error) {
	resource, sub, _ := strings.Cut(m.Resource, "/")
	attributes := &authorizationv1.ResourceAttributes{
		Group: m.Group, Resource: resource, Subresource: sub, Verb: m.Verb, Namespace: m.Namespace, Name: m.Name,
	}
	if account == nil {
		answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx,
			&authorizationv1.SelfSubjectAccessReview{
				Spec: authorizationv1.SelfSubjectAccessReviewSpec{ResourceAttributes: attributes},
			}, metav1.CreateOptions{})
		if err != nil {
			return false, err
		}
		return answer.Status.Allowed, nil
	}
	answer, err := client.AuthorizationV1().SubjectAccessReviews().Create(ctx, &authorizationv1.SubjectAccessReview{
		Spec: authorizationv1.SubjectAccessReviewSpec{User: account.User, Groups: account.Groups,
			ResourceAttributes: attributes},
	}, metav1.CreateOptions{})
	if err != nil {
		return false, err
	}
	return answer.Status.Allowed, nil
}
