package invariants

import (
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read"
	"berth.dev/berth/pkg/wellknown"
)

// jobOf is the gang of the pods of a Job that are to be one, empty for other pods. Those of an earlier Job of the same
// name are in another gang: they are no members of this one.
func jobOf(pod *v1.Pod) string {
	by := metav1.GetControllerOf(pod)
	if by == nil || by.Kind != "Job" || pod.Annotations[wellknown.GangKey] == "" {
		return ""
	}
	return gangOfJob(by.Name, by.UID)
}

func gangOfJob(name string, uid types.UID) string {
	owner := read.Owner{Kind: "Job", Name: name}
	return owner.Gang().Name + "/" + string(uid)
}

// Known is the name by which the scheduler knows a gang, for the PodGroup that it makes for that of a Job.
func Known(gang string) string {
	name, _, _ := strings.Cut(gang, "/")
	return name
}

// GroupOf is what a Job says of the gang of its pods, as a PodGroup would say it.
func GroupOf(job *batchv1.Job) *unstructured.Unstructured {
	return read.NewPodGroup(job.Namespace, gangOfJob(job.Name, job.UID), int(ptr.Deref(job.Spec.Parallelism, 1)))
}

func (c *Checker) job(event watch.EventType, job *batchv1.Job, old runtime.Object) {
	group := GroupOf(job)
	c.jobs[Known(group.GetName())] = group.GetName()
	var before runtime.Object
	if was, ok := old.(*batchv1.Job); ok {
		before = GroupOf(was)
	}
	c.group(event, group, before)
}
