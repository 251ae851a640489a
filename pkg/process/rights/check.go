package rights

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
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

// OwnAccount stands for the account with which the cluster is asked.
const OwnAccount = "self"

// ParseAccount reads whose rights are meant: a service account as namespace/name or by its user name, any other user,
// or OwnAccount, for which it returns nil.
func ParseAccount(value string) (*Account, error) {
	const allowed = "must be namespace/name of a service account, a user name, or " + OwnAccount
	if value == OwnAccount {
		return nil, nil //nolint:nilnil // there is no other account
	}
	if strings.TrimSpace(value) == "" {
		return nil, fmt.Errorf("is empty; %s", allowed)
	}
	if namespace, name, found := strings.Cut(value, "/"); found {
		if namespace == "" || name == "" || strings.Contains(name, "/") || strings.Contains(value, ":") {
			return nil, fmt.Errorf("%q; %s", value, allowed)
		}
		return ServiceAccount(namespace, name), nil
	}
	if account, found := strings.CutPrefix(value, "system:serviceaccount:"); found {
		namespace, name, _ := strings.Cut(account, ":")
		// As a user without the groups of service accounts it would seem to have fewer rights than it has.
		if namespace == "" || name == "" || strings.Contains(name, ":") {
			return nil, fmt.Errorf("%q; %s", value, allowed)
		}
		return ServiceAccount(namespace, name), nil
	}
	return &Account{User: value, Groups: []string{"system:authenticated"}}, nil
}

// NamespacesToCreatePods are those in which the user of the client may create pods.
func NamespacesToCreatePods(ctx context.Context, client kubernetes.Interface) ([]string, error) {
	var own []string
	err := pager.New(pager.SimplePageFunc(func(options metav1.ListOptions) (runtime.Object, error) {
		return client.CoreV1().Namespaces().List(ctx, options)
	})).EachListItem(ctx, metav1.ListOptions{}, func(object runtime.Object) error {
		name := object.(*v1.Namespace).Name
		allowed, err := review(ctx, client, Need{Namespace: name, Verb: "create", Resource: "pods"}, nil)
		if err != nil {
			return fmt.Errorf("asking for the rights in namespace %s: %w", name, err)
		}
		if allowed {
			own = append(own, name)
		}
		return nil
	})
	if err != nil {
		return nil, fmt.Errorf("listing namespaces: %w", err)
	}
	return own, nil
}
