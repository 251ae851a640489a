package admit

import (
	"context"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	corev1 "k8s.io/client-go/kubernetes/typed/core/v1"
	"k8s.io/kubernetes/pkg/apis/admissionregistration"
	"k8s.io/kubernetes/pkg/apis/apps"
	"k8s.io/kubernetes/pkg/apis/autoscaling"
	"k8s.io/kubernetes/pkg/apis/batch"
	"k8s.io/kubernetes/pkg/apis/coordination"
	"k8s.io/kubernetes/pkg/apis/core"
	"k8s.io/kubernetes/pkg/apis/networking"
	"k8s.io/kubernetes/pkg/apis/node"
	"k8s.io/kubernetes/pkg/apis/policy"
	"k8s.io/kubernetes/pkg/apis/rbac"
	"k8s.io/kubernetes/pkg/apis/resource"
	"k8s.io/kubernetes/pkg/apis/scheduling"
	"k8s.io/kubernetes/pkg/apis/storage"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/mutatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicy"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingadmissionpolicybinding"
	"k8s.io/kubernetes/pkg/registry/admissionregistration/validatingwebhookconfiguration"
	"k8s.io/kubernetes/pkg/registry/apps/daemonset"
	"k8s.io/kubernetes/pkg/registry/apps/deployment"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/autoscaling/horizontalpodautoscaler"
	"k8s.io/kubernetes/pkg/registry/batch/cronjob"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/coordination/lease"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/limitrange"
	"k8s.io/kubernetes/pkg/registry/core/namespace"
	nodestrategy "k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/core/podtemplate"
	"k8s.io/kubernetes/pkg/registry/core/replicationcontroller"
	"k8s.io/kubernetes/pkg/registry/core/resourcequota"
	"k8s.io/kubernetes/pkg/registry/core/secret"
	"k8s.io/kubernetes/pkg/registry/core/service"
	"k8s.io/kubernetes/pkg/registry/core/serviceaccount"
	"k8s.io/kubernetes/pkg/registry/networking/ingress"
	"k8s.io/kubernetes/pkg/registry/networking/ingressclass"
	"k8s.io/kubernetes/pkg/registry/networking/networkpolicy"
	"k8s.io/kubernetes/pkg/registry/node/runtimeclass"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrole"
	"k8s.io/kubernetes/pkg/registry/rbac/clusterrolebinding"
	"k8s.io/kubernetes/pkg/registry/rbac/role"
	"k8s.io/kubernetes/pkg/registry/rbac/rolebinding"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/podgroup"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/scheduling/workload"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csinode"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

// strategies are what the API server does before it stores an object. Kinds for which no manifests are written are left
// out.
var strategies = map[schema.GroupKind]rest.RESTCreateStrategy{
	core.Kind("ConfigMap"):             configmap.Strategy,
	core.Kind("LimitRange"):            limitrange.Strategy,
	core.Kind("Namespace"):             namespace.Strategy,
	core.Kind("Node"):                  nodestrategy.Strategy,
	core.Kind("PersistentVolume"):      persistentvolume.Strategy,
	core.Kind("PersistentVolumeClaim"): persistentvolumeclaim.Strategy,
	core.Kind("Pod"):                   pod.Strategy,
	core.Kind("PodTemplate"):           podtemplate.Strategy,
	core.Kind("ReplicationController"): replicationcontroller.Strategy,
	core.Kind("ResourceQuota"):         resourcequota.Strategy,
	core.Kind("Secret"):                secret.Strategy,
	core.Kind("Service"):               service.Strategy,
	core.Kind("ServiceAccount"):        serviceaccount.Strategy,

	admissionregistration.Kind("MutatingWebhookConfiguration"): mutatingwebhookconfiguration.Strategy,
	admissionregistration.Kind("ValidatingAdmissionPolicy"):    validatingadmissionpolicy.NewStrategy(nil, nil),
	admissionregistration.Kind("ValidatingAdmissionPolicyBinding"): validatingadmissionpolicybinding.NewStrategy(nil, nil,
		nil),
	admissionregistration.Kind("ValidatingWebhookConfiguration"): validatingwebhookconfiguration.Strategy,
	apps.Kind("DaemonSet"):                      daemonset.Strategy,
	apps.Kind("Deployment"):                     deployment.Strategy,
	apps.Kind("ReplicaSet"):                     replicaset.Strategy,
	apps.Kind("StatefulSet"):                    statefulset.Strategy,
	autoscaling.Kind("HorizontalPodAutoscaler"): horizontalpodautoscaler.Strategy,
	batch.Kind("CronJob"):                       cronjob.Strategy,
	batch.Kind("Job"):                           job.Strategy,
	coordination.Kind("Lease"):                  lease.Strategy,
	networking.Kind("Ingress"):                  ingress.Strategy,
	networking.Kind("IngressClass"):             ingressclass.Strategy,
	networking.Kind("NetworkPolicy"):            networkpolicy.Strategy,
	node.Kind("RuntimeClass"):                   runtimeclass.Strategy,
	policy.Kind("PodDisruptionBudget"):          poddisruptionbudget.Strategy,
	rbac.Kind("ClusterRole"):                    clusterrole.Strategy,
	rbac.Kind("ClusterRoleBinding"):             clusterrolebinding.Strategy,
	rbac.Kind("Role"):                           role.Strategy,
	rbac.Kind("RoleBinding"):                    rolebinding.Strategy,
	resource.Kind("DeviceClass"):                deviceclass.Strategy,
	resource.Kind("ResourceClaim"):              resourceclaim.NewStrategy(adminNamespaces{}, nil),
	resource.Kind("ResourceClaimTemplate"):      resourceclaimtemplate.NewStrategy(adminNamespaces{}),
	resource.Kind("ResourceSlice"):              resourceslice.Strategy,
	scheduling.Kind("PodGroup"):                 podgroup.NewStrategy(),
	scheduling.Kind("PriorityClass"):            priorityclass.Strategy,
	scheduling.Kind("Workload"):                 workload.Strategy,
	storage.Kind("CSIDriver"):                   csidriver.Strategy,
	storage.Kind("CSINode"):                     csinode.Strategy,
	storage.Kind("StorageClass"):                storageclass.Strategy,
}

// adminNamespaces are asked of claims with admin access. Which namespaces may have them is known to a cluster alone.
type adminNamespaces struct{ corev1.NamespaceInterface }

// Get returns a namespace that may have claims with admin access.
func (adminNamespaces) Get(_ context.Context, name string, _ metav1.GetOptions) (*v1.Namespace, error) {
	labels := map[string]string{resource.DRAAdminNamespaceLabelKey: "true"}
	return &v1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name, Labels: labels}}, nil
}
