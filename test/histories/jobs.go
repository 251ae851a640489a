package main

import (
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/test/histories/history"
)

var jobs = batchv1.SchemeGroupVersion.WithResource("jobs")

// createPod makes the pod and what has to be there before it. A Job that is gone makes no pods.
func (w *world) createPod(p *history.Pod) error {
	objects := p.Objects()
	if p.Job {
		job, ok := w.api.Get(jobs, types.NamespacedName{Namespace: history.Namespace, Name: p.Gang}).(*batchv1.Job)
		if !ok {
			return nil
		}
		belongsTo(objects[len(objects)-1].(*v1.Pod), job)
	}
	w.made[p.Name] = p
	return w.create(objects...)
}

func belongsTo(pod *v1.Pod, job *batchv1.Job) {
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job,
		batchv1.SchemeGroupVersion.WithKind("Job"))}
}

// collectAfter is how long the garbage collector takes.
const collectAfter = time.Second

// deleteJob deletes a Job. Its pods go later, and may meet those of another Job of its name.
func (w *world) deleteJob(name string) {
	key := types.NamespacedName{Namespace: history.Namespace, Name: name}
	job, ok := w.api.Get(jobs, key).(*batchv1.Job)
	if !ok {
		return
	}
	w.api.Delete(jobs, key)
	w.goneJobs = append(w.goneJobs, goneJob{job.UID, time.Now()})
	for _, pod := range w.podsOf(job.UID) {
		delete(w.made, pod.Name) // nothing makes it again
	}
}

// goneJob is a Job that was deleted.
type goneJob struct {
	uid types.UID
	at  time.Time
}

// collectOfJobs removes what belongs to Jobs that were deleted.
func (w *world) collectOfJobs() error {
	for len(w.goneJobs) > 0 && time.Since(w.goneJobs[0].at) >= collectAfter {
		uid := w.goneJobs[0].uid
		w.goneJobs = w.goneJobs[1:]
		for _, obj := range w.api.List(podGroups) {
			if group := obj.(*unstructured.Unstructured); owns(uid, group) {
				w.api.Delete(podGroups, types.NamespacedName{Namespace: history.Namespace, Name: group.GetName()})
			}
		}
		for _, pod := range w.podsOf(uid) {
			if err := w.remove(pod.Name); err != nil {
				return err
			}
		}
	}
	return nil
}

func (w *world) podsOf(job types.UID) []*v1.Pod {
	var of []*v1.Pod
	for _, obj := range w.api.List(pods) {
		if pod := obj.(*v1.Pod); owns(job, pod) {
			of = append(of, pod)
		}
	}
	return of
}

func owns(job types.UID, obj metav1.Object) bool {
	owners := obj.GetOwnerReferences()
	return len(owners) > 0 && owners[0].UID == job
}
