package rules

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/authorization/authorizerfactory"
	"k8s.io/apiserver/pkg/registry/rest"

	_ "k8s.io/kubernetes/pkg/apis/apps/install"         // the kinds and their defaults
	_ "k8s.io/kubernetes/pkg/apis/batch/install"        // the same
	_ "k8s.io/kubernetes/pkg/apis/coordination/install" // the same
	_ "k8s.io/kubernetes/pkg/apis/core/install"         // the same
	_ "k8s.io/kubernetes/pkg/apis/events/install"       // the same
	_ "k8s.io/kubernetes/pkg/apis/lifecycle/install"    // the same
	_ "k8s.io/kubernetes/pkg/apis/policy/install"       // the same
	_ "k8s.io/kubernetes/pkg/apis/resource/install"     // the same
	_ "k8s.io/kubernetes/pkg/apis/scheduling/install"   // the same
	_ "k8s.io/kubernetes/pkg/apis/storage/install"      // the same
	"k8s.io/kubernetes/pkg/registry/apps/controllerrevision"
	"k8s.io/kubernetes/pkg/registry/apps/replicaset"
	"k8s.io/kubernetes/pkg/registry/apps/statefulset"
	"k8s.io/kubernetes/pkg/registry/batch/job"
	"k8s.io/kubernetes/pkg/registry/core/configmap"
	"k8s.io/kubernetes/pkg/registry/core/node"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolume"
	"k8s.io/kubernetes/pkg/registry/core/persistentvolumeclaim"
	"k8s.io/kubernetes/pkg/registry/core/pod"
	"k8s.io/kubernetes/pkg/registry/lifecycle/evictionrequest"
	"k8s.io/kubernetes/pkg/registry/policy/poddisruptionbudget"
	"k8s.io/kubernetes/pkg/registry/resource/deviceclass"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaim"
	"k8s.io/kubernetes/pkg/registry/resource/resourceclaimtemplate"
	"k8s.io/kubernetes/pkg/registry/resource/resourceslice"
	"k8s.io/kubernetes/pkg/registry/scheduling/priorityclass"
	"k8s.io/kubernetes/pkg/registry/storage/csidriver"
	"k8s.io/kubernetes/pkg/registry/storage/csistoragecapacity"
	"k8s.io/kubernetes/pkg/registry/storage/storageclass"
)

// strategy is what kube-apiserver does to the objects of a kind, and to their status where that is written apart.
type strategy struct {
	object rest.RESTCreateUpdateStrategy
	status rest.RESTUpdateStrategy
}

// claims asks whether a user may write the status: all may.
var claims = resourceclaim.NewStrategy(nil, authorizerfactory.NewAlwaysAllowAuthorizer())

func kind(group, version, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: version, Resource: resource}
}

// strategies are those of the kinds that scenarios, controllers and schedulers write. Others are stored as they are.
var strategies = map[schema.GroupVersionResource]strategy{
	kind("", "v1", "pods"):       {pod.Strategy, pod.StatusStrategy},
	kind("", "v1", "nodes"):      {node.Strategy, node.StatusStrategy},
	kind("", "v1", "configmaps"): {object: configmap.Strategy},
	kind("", "v1", "persistentvolumes"): {persistentvolume.Strategy,
		persistentvolume.StatusStrategy},
	kind("", "v1", "persistentvolumeclaims"): {persistentvolumeclaim.Strategy,
		persistentvolumeclaim.StatusStrategy},
	kind("apps", "v1", "replicasets"): {replicaset.Strategy,
		replicaset.StatusStrategy},
	kind("apps", "v1", "statefulsets"): {statefulset.Strategy,
		statefulset.StatusStrategy},
	kind("apps", "v1", "controllerrevisions"): {object: controllerrevision.Strategy},
	kind("batch", "v1", "jobs"):               {job.Strategy, job.StatusStrategy},
	{Group: "lifecycle.k8s.io", Version: "v1alpha1",
		Resource: "evictionrequests"}: {object: evictionrequest.NewStrategy()},
	kind("policy", "v1", "poddisruptionbudgets"): {poddisruptionbudget.Strategy,
		poddisruptionbudget.StatusStrategy},
	kind("resource.k8s.io", "v1", "deviceclasses"): {object: deviceclass.Strategy},
	kind("resource.k8s.io", "v1", "resourceclaims"): {claims,
		resourceclaim.NewStatusStrategy(claims)},
	{Group: "resource.k8s.io", Version: "v1",
		Resource: "resourceclaimtemplates"}: {object: resourceclaimtemplate.NewStrategy(nil)},
	kind("resource.k8s.io", "v1", "resourceslices"):      {object: resourceslice.Strategy},
	kind("scheduling.k8s.io", "v1", "priorityclasses"):   {object: priorityclass.Strategy},
	kind("storage.k8s.io", "v1", "csidrivers"):           {object: csidriver.Strategy},
	kind("storage.k8s.io", "v1", "csistoragecapacities"): {object: csistoragecapacity.Strategy},
	kind("storage.k8s.io", "v1", "storageclasses"):       {object: storageclass.Strategy},
}
