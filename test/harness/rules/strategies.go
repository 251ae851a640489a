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

// strategies are those of the kinds that scenarios, controllers and schedulers write. Others are stored as they are.
var strategies = map[schema.GroupVersionResource]strategy{
	{Version: "v1", Resource: "pods"}:                                              {pod.Strategy, pod.StatusStrategy},
	{Version: "v1", Resource: "nodes"}:                                             {node.Strategy, node.StatusStrategy},
	{Version: "v1", Resource: "configmaps"}:                                        {object: configmap.Strategy},
	{Version: "v1", Resource: "persistentvolumes"}:                                 {persistentvolume.Strategy, persistentvolume.StatusStrategy},
	{Version: "v1", Resource: "persistentvolumeclaims"}:                            {persistentvolumeclaim.Strategy, persistentvolumeclaim.StatusStrategy},
	{Group: "apps", Version: "v1", Resource: "replicasets"}:                        {replicaset.Strategy, replicaset.StatusStrategy},
	{Group: "apps", Version: "v1", Resource: "statefulsets"}:                       {statefulset.Strategy, statefulset.StatusStrategy},
	{Group: "apps", Version: "v1", Resource: "controllerrevisions"}:                {object: controllerrevision.Strategy},
	{Group: "batch", Version: "v1", Resource: "jobs"}:                              {job.Strategy, job.StatusStrategy},
	{Group: "lifecycle.k8s.io", Version: "v1alpha1", Resource: "evictionrequests"}: {object: evictionrequest.NewStrategy()},
	{Group: "policy", Version: "v1", Resource: "poddisruptionbudgets"}:             {poddisruptionbudget.Strategy, poddisruptionbudget.StatusStrategy},
	{Group: "resource.k8s.io", Version: "v1", Resource: "deviceclasses"}:           {object: deviceclass.Strategy},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaims"}:          {claims, resourceclaim.NewStatusStrategy(claims)},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceclaimtemplates"}:  {object: resourceclaimtemplate.NewStrategy(nil)},
	{Group: "resource.k8s.io", Version: "v1", Resource: "resourceslices"}:          {object: resourceslice.Strategy},
	{Group: "scheduling.k8s.io", Version: "v1", Resource: "priorityclasses"}:       {object: priorityclass.Strategy},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csidrivers"}:               {object: csidriver.Strategy},
	{Group: "storage.k8s.io", Version: "v1", Resource: "csistoragecapacities"}:     {object: csistoragecapacity.Strategy},
	{Group: "storage.k8s.io", Version: "v1", Resource: "storageclasses"}:           {object: storageclass.Strategy},
}
