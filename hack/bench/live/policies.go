package live

import (
	"context"
	"fmt"
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/pkg/sandbox"
)

// As returns a client of another user.
func (b *Bed) As(user string) (kubernetes.Interface, error) {
	config, err := b.box.RESTConfig()
	if err != nil {
		return nil, err
	}
	config.QPS, config.Burst = -1, -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		return nil, fmt.Errorf("making a client of user %s: %w", user, err)
	}
	return client, nil
}

// policyFiles are those of manifests/admission that hold policies.
var policyFiles = []string{"values.yaml", "devices.yaml", "podgroups.yaml", "scheduler.yaml"}

// admission returns the kind of an object of admission.
func admission(resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: "admissionregistration.k8s.io", Version: "v1", Resource: resource}
}

// Policies removes all admission policies, and creates those of the folder if there are to be any.
func (b *Bed) Policies(ctx context.Context, dir string, there bool) error {
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "mutatingadmissionpolicies"} {
		if err := b.Dynamic.Resource(admission(resource)).DeleteCollection(ctx, metav1.DeleteOptions{},
			metav1.ListOptions{}); err != nil {
			return fmt.Errorf("removing %s: %w", resource, err)
		}
	}
	// The roles beside the policies are created with them.
	rbac := schema.GroupVersion{Group: "rbac.authorization.k8s.io", Version: "v1"}
	for resource, name := range map[string]string{"clusterroles": "berth-device-assigner",
		"clusterrolebindings": "berth-device-assigner-hami"} {
		if err := b.Dynamic.Resource(rbac.WithResource(resource)).Delete(ctx, name, metav1.DeleteOptions{}); err != nil &&
			!apierrors.IsNotFound(err) {
			return fmt.Errorf("removing %s %s: %w", resource, name, err)
		}
	}
	if !there {
		return nil
	}
	config, err := b.box.RESTConfig()
	if err != nil {
		return err
	}
	if _, err := sandbox.CreateFiles(ctx, config, "default", os.DirFS(dir), policyFiles...); err != nil {
		return fmt.Errorf("creating the policies: %w", err)
	}
	return nil
}
