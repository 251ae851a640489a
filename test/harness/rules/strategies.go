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

// v1Of is version v1 of a kind.
func v1Of(group, resource string) schema.GroupVersionResource {
	return schema.GroupVersionResource{Group: group, Version: "v1", Resource: resource}
}

// strategies are those of the kinds that scenarios, controllers and schedulers write. Others are stored as they are.
var strategies = map[schema.GroupVersionResource]strategy{
	v1Of("", "persistentvolumeclaims"): {persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},

	v1Of("", "pods"):                                  {pod.Strategy, pod.StatusStrategy},
	v1Of("", "nodes"):                                 {node.Strategy, node.StatusStrategy},
	v1Of("", "configmaps"):                            {object: configmap.Strategy},
	v1Of("", "persistentvolumes"):                     {persistentvolume.Strategy, persistentvolume.StatusStrategy},
	v1Of("apps", "replicasets"):                       {replicaset.Strategy, replicaset.StatusStrategy},
	v1Of("apps", "statefulsets"):                      {statefulset.Strategy, statefulset.StatusStrategy},
	v1Of("apps", "controllerrevisions"):               {object: controllerrevision.Strategy},
	v1Of("batch", "jobs"):                             {job.Strategy, job.StatusStrategy},
	v1Of("policy", "poddisruptionbudgets"):            {poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy},
	v1Of("resource.k8s.io", "deviceclasses"):          {object: deviceclass.Strategy},
	v1Of("resource.k8s.io", "resourceclaims"):         {claims, resourceclaim.NewStatusStrategy(claims)},
	v1Of("resource.k8s.io", "resourceclaimtemplates"): {object: resourceclaimtemplate.NewStrategy(nil)},
	v1Of("resource.k8s.io", "resourceslices"):         {object: resourceslice.Strategy},
	v1Of("scheduling.k8s.io", "priorityclasses"):      {object: priorityclass.Strategy},
	v1Of("storage.k8s.io", "csidrivers"):              {object: csidriver.Strategy},
	v1Of("storage.k8s.io", "csistoragecapacities"):    {object: csistoragecapacity.Strategy},
	v1Of("storage.k8s.io", "storageclasses"):          {object: storageclass.Strategy},
}
