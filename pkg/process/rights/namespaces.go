package rights

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/tools/pager"
)

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
