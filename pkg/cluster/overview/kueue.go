package overview

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/gpu/gpuview"
)

// Place is where a workload stands in Kueue.
type Place struct {
	// Name of the LocalQueue, and the ClusterQueue behind it once it is admitted.
	Name         string `json:"name"`
	ClusterQueue string `json:"clusterQueue,omitempty"`
	// Admitted says that the quota is reserved for it. Position among those of the LocalQueue that wait is 0 then, else
	// from 1, by priority and age.
	Admitted bool `json:"admitted"`
	Position int  `json:"position"`
	// Reason is why it is not admitted, as Kueue has said last.
	Reason string `json:"reason"`
}

// Queue is a LocalQueue of Kueue.
type Queue struct {
	Namespace    string `json:"namespace"`
	Name         string `json:"name"`
	ClusterQueue string `json:"clusterQueue"`
	// Pending and Admitted workloads, as Kueue counts them.
	Pending  int `json:"pending"`
	Admitted int `json:"admitted"`
	// UsedGPUs are reserved by workloads of this LocalQueue. QuotaGPUs is the nominal quota of its ClusterQueue, and
	// BorrowedGPUs what that has beyond it from its cohort; both are -1 where the ClusterQueue may not be read.
	UsedGPUs     int64 `json:"usedGPUs"`
	QuotaGPUs    int64 `json:"quotaGPUs"`
	BorrowedGPUs int64 `json:"borrowedGPUs"`
}

// What is read of Kueue's objects. The fields are the same in v1beta1 and v1beta2.
type (
	kueueWorkload struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			QueueName string `json:"queueName"`
			Priority  int32  `json:"priority"`
		} `json:"spec"`
		Status struct {
			Admission *struct {
				ClusterQueue string `json:"clusterQueue"`
			} `json:"admission"`
			Conditions []metav1.Condition `json:"conditions"`
		} `json:"status"`
	}
	kueueLocalQueue struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			ClusterQueue string `json:"clusterQueue"`
		} `json:"spec"`
		Status struct {
			PendingWorkloads   int           `json:"pendingWorkloads"`
			AdmittedWorkloads  int           `json:"admittedWorkloads"`
			FlavorsReservation []kueueFlavor `json:"flavorsReservation"`
		} `json:"status"`
	}
	kueueClusterQueue struct {
		metav1.ObjectMeta `json:"metadata"`
		Spec              struct {
			ResourceGroups []struct {
				Flavors []kueueFlavor `json:"flavors"`
			} `json:"resourceGroups"`
		} `json:"spec"`
		Status struct {
			FlavorsReservation []kueueFlavor `json:"flavorsReservation"`
		} `json:"status"`
	}
	// kueueFlavor is the quota of a flavor, or what is used of it.
	kueueFlavor struct {
		Resources []struct {
			Name         v1.ResourceName   `json:"name"`
			NominalQuota resource.Quantity `json:"nominalQuota"`
			Total        resource.Quantity `json:"total"`
			Borrowed     resource.Quantity `json:"borrowed"`
		} `json:"resources"`
	}
)

// kueue has Kueue's objects.
type kueue struct {
	workloads     []*kueueWorkload
	localQueues   []*kueueLocalQueue
	clusterQueues map[string]*kueueClusterQueue
}

// decoded is what is read of an object of Kueue, nil if it cannot be read. Other objects stay as they are.
func decoded(object *unstructured.Unstructured) metav1.Object {
	var value metav1.Object
	switch object.GetKind() {
	case "Workload":
		value = &kueueWorkload{}
	case "LocalQueue":
		value = &kueueLocalQueue{}
	case "ClusterQueue":
		value = &kueueClusterQueue{}
	default:
		return object
	}
	if runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, value) != nil {
		return nil
	}
	return value
}

func (k *kueue) add(object metav1.Object) {
	switch o := object.(type) {
	case *kueueWorkload:
		if !o.is("Finished") {
			k.workloads = append(k.workloads, o)
		}
	case *kueueLocalQueue:
		k.localQueues = append(k.localQueues, o)
	case *kueueClusterQueue:
		k.clusterQueues[o.Name] = o
	}
}

func (w *kueueWorkload) is(kind string) bool {
	return meta.IsStatusConditionTrue(w.Status.Conditions, kind)
}

// since is the beginning of the wait: the workload's creation, or its last eviction.
func (w *kueueWorkload) since() time.Time {
	if w.is("Evicted") {
		return meta.FindStatusCondition(w.Status.Conditions, "Evicted").LastTransitionTime.Time
	}
	return w.CreationTimestamp.Time
}

// place sets the position of each workload in its queue.
func (k *kueue) place(at func(jobKey) *jobEntry) {
	type queue struct{ namespace, name string }
	waiting := map[queue][]*kueueWorkload{}
	places := map[types.UID]*Place{}
	for _, w := range k.workloads {
		p := &Place{Name: w.Spec.QueueName, Admitted: w.is("Admitted")}
		if w.Status.Admission != nil {
			p.ClusterQueue = w.Status.Admission.ClusterQueue
		}
		places[w.UID] = p
		if p.Admitted {
			continue
		}
		for _, kind := range []string{"QuotaReserved", "Admitted"} {
			if c := meta.FindStatusCondition(w.Status.Conditions, kind); c != nil && !w.is(kind) {
				p.Reason = cmp.Or(p.Reason, plainText(c.Message))
			}
		}
		p.Reason = cmp.Or(p.Reason, "waits for Kueue to admit it")
		q := queue{w.Namespace, w.Spec.QueueName}
		waiting[q] = append(waiting[q], w)
	}
	for _, list := range waiting {
		slices.SortFunc(list, func(x, y *kueueWorkload) int {
			return cmp.Or(-cmp.Compare(x.Spec.Priority, y.Spec.Priority), x.since().Compare(y.since()),
				compareNames(x.Name, y.Name))
		})
		for i, w := range list {
			places[w.UID].Position = i + 1
		}
	}
	for _, w := range k.workloads {
		owner := metav1.GetControllerOf(w)
		if owner == nil && len(w.OwnerReferences) == 1 {
			owner = &w.OwnerReferences[0] // a group of pods has several owners, and none is its controller
		}
		if owner == nil {
			continue
		}
		j := at(jobKey{w.Namespace, owner.Kind, owner.Name})
		j.Queue = places[w.UID]
		if j.Pods == 0 {
			j.since = w.CreationTimestamp.Time
			if !j.Queue.Admitted {
				j.State = JobQueued
			}
		}
	}
}

// list is the LocalQueues in the order of their names.
func (k *kueue) list(keys gpuview.Keys) []Queue {
	queues := []Queue{}
	for _, q := range slices.SortedFunc(slices.Values(k.localQueues), func(x, y *kueueLocalQueue) int {
		return cmp.Or(cmp.Compare(x.Namespace, y.Namespace), compareNames(x.Name, y.Name))
	}) {
		shown := Queue{
			Namespace: q.Namespace, Name: q.Name, ClusterQueue: q.Spec.ClusterQueue,
			Pending: q.Status.PendingWorkloads, Admitted: q.Status.AdmittedWorkloads,
			QuotaGPUs: -1, BorrowedGPUs: -1,
		}
		shown.UsedGPUs, _, _ = gpusOf(keys, q.Status.FlavorsReservation)
		if of := k.clusterQueues[q.Spec.ClusterQueue]; of != nil {
			shown.QuotaGPUs = 0
			for _, group := range of.Spec.ResourceGroups {
				_, quota, _ := gpusOf(keys, group.Flavors)
				shown.QuotaGPUs += quota
			}
			_, _, shown.BorrowedGPUs = gpusOf(keys, of.Status.FlavorsReservation)
		}
		queues = append(queues, shown)
	}
	return queues
}

// gpusOf sums up the whole GPUs of flavors.
func gpusOf(keys gpuview.Keys, flavors []kueueFlavor) (total, quota, borrowed int64) {
	for _, f := range flavors {
		for _, r := range f.Resources {
			if slices.Contains(keys.Resources, string(r.Name)) {
				total += r.Total.Value()
				quota += r.NominalQuota.Value()
				borrowed += r.Borrowed.Value()
			}
		}
	}
	return total, quota, borrowed
}

// String is the queue and the position in it, "-" without a queue.
func (p *Place) String() string {
	switch {
	case p == nil:
		return "-"
	case p.Admitted:
		return p.Name
	}
	return fmt.Sprintf("%s, position %d", p.Name, p.Position)
}
