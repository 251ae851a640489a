package main

import (
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

var jobs = batchv1.SchemeGroupVersion.WithResource("jobs")

// job is the Job whose pods are the gang.
func (g *Gang) job() *batchv1.Job {
	return &batchv1.Job{
		ObjectMeta: metav1.ObjectMeta{Name: g.Name, Namespace: namespace},
		Spec:       batchv1.JobSpec{Parallelism: ptr.To(int32(g.MinMember))}, //nolint:gosec // small
	}
}

// createPod makes the pod and what has to be there before it. A Job that is gone makes no pods.
func (w *world) createPod(p *Pod) error {
	objects := p.objects()
	if p.Job {
		job, ok := w.api.Get(jobs, types.NamespacedName{Namespace: namespace, Name: p.Gang}).(*batchv1.Job)
		if !ok {
			return nil
		}
		belongsTo(objects[len(objects)-1].(*v1.Pod), job)
	}
	w.made[p.Name] = p
	return w.create(objects...)
}

func belongsTo(pod *v1.Pod, job *batchv1.Job) {
	pod.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(job, batchv1.SchemeGroupVersion.WithKind("Job"))}
}

// deleteJob deletes a Job, its pods and the PodGroup that was made for them.
func (w *world) deleteJob(name string) error {
	key := types.NamespacedName{Namespace: namespace, Name: name}
	job, ok := w.api.Get(jobs, key).(*batchv1.Job)
	if !ok {
		return nil
	}
	w.api.Delete(jobs, key)
	owned := func(obj metav1.Object) bool {
		owners := obj.GetOwnerReferences()
		return len(owners) > 0 && owners[0].UID == job.UID
	}
	for _, obj := range w.api.List(podGroups) {
		if group := obj.(*unstructured.Unstructured); owned(group) {
			w.api.Delete(podGroups, types.NamespacedName{Namespace: namespace, Name: group.GetName()})
		}
	}
	for _, obj := range w.api.List(pods) {
		pod := obj.(*v1.Pod)
		if !owned(pod) {
			continue
		}
		delete(w.made, pod.Name)
		if err := w.remove(pod.Name); err != nil {
			return err
		}
	}
	return nil
}

// object is the PodGroup or the Job.
func (g *Gang) object() runtime.Object {
	if g.Job {
		return g.job()
	}
	return g.podGroup()
}
