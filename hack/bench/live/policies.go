package live

import (
	"os"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"berth.dev/berth/hack/bench/rig"
	"berth.dev/berth/pkg/sandbox"
)

// As returns a client of another user.
func (b *Bed) As(user string) kubernetes.Interface {
	config := rig.Must(b.box.RESTConfig())
	config.QPS, config.Burst = -1, -1
	config.Impersonate = rest.ImpersonationConfig{UserName: user, Groups: []string{"system:authenticated"}}
	return rig.Must(kubernetes.NewForConfig(config))
}

// policyFiles are those of manifests/admission that hold policies.
var policyFiles = []string{"values.yaml", "devices.yaml", "podgroups.yaml", "scheduler.yaml"}

// remove removes objects of a kind: that of a name, or all for none. One that is not there is removed already.
func (b *Bed) remove(group, resource, name string) {
	objects := b.Dynamic.Resource(schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource})
	var err error
	if name == "" {
		err = objects.DeleteCollection(b.ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	} else {
		if err = objects.Delete(b.ctx, name, metav1.DeleteOptions{}); apierrors.IsNotFound(err) {
			err = nil
		}
	}
	rig.Check(err, "removing %s %s", resource, name)
}

// Policies removes all admission policies, and creates those of the folder if there are to be any.
func (b *Bed) Policies(dir string, there bool) {
	for _, resource := range []string{"validatingadmissionpolicybindings", "validatingadmissionpolicies",
		"mutatingadmissionpolicybindings", "mutatingadmissionpolicies"} {
		b.remove("admissionregistration.k8s.io", resource, "")
	}
	// The roles beside the policies are created with them.
	b.remove("rbac.authorization.k8s.io", "clusterroles", "berth-device-assigner")
	b.remove("rbac.authorization.k8s.io", "clusterrolebindings", "berth-device-assigner-hami")
	if there {
		config := rig.Must(b.box.RESTConfig())
		_, err := sandbox.CreateFiles(b.ctx, config, "default", os.DirFS(dir), policyFiles...)
		rig.Check(err, "creating the policies")
	}
}
