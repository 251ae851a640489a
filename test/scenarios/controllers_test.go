package scenarios_test

import (
	"context"
	"fmt"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// undeclared is the annotation that makes a gang of a controller's pods without a PodGroup.
const undeclared = "berth.dev/gang"

// controlled returns what a line says of a controller of pods: where it is, how many pods it has, and their template.
// Its pods are a set of its name, and members of the group that the line names, if any.
func (w *world) controlled(ctx context.Context, l *line) (meta metav1.ObjectMeta, n int32, template v1.PodTemplateSpec,
	err error) {
	namespace, name := w.locate(l.arg(0))
	replicas, err := l.int(1)
	if err != nil {
		return meta, 0, template, err
	}
	if err := w.namespace(ctx, namespace); err != nil {
		return meta, 0, template, err
	}
	set := setOf(l.arg(0))
	group := l.option("group", "")
	template, err = w.template(ctx, namespace, group, set, 0, l)
	if group == "" && l.option("labelled", "") == "" {
		delete(template.Labels, groupLabel)
	}
	if template.Annotations[undeclared] == "true" {
		w.expectMinimum(namespace+"/set:"+set, replicas)
	}
	return metav1.ObjectMeta{Name: name, Namespace: namespace}, int32(replicas), template, err
}

func (w *world) doReplicaSet(ctx context.Context, l *line) error {
	meta, n, template, err := w.controlled(ctx, l)
	if err != nil {
		return err
	}
	_, err = w.client.AppsV1().ReplicaSets(meta.Namespace).Create(ctx, &appsv1.ReplicaSet{ObjectMeta: meta,
		Spec: appsv1.ReplicaSetSpec{Replicas: &n, Selector: ofSet(template.Labels[setLabel]), Template: template}},
		metav1.CreateOptions{})
	return err
}

func (w *world) doStatefulSet(ctx context.Context, l *line) error {
	meta, n, template, err := w.controlled(ctx, l)
	if err != nil {
		return err
	}
	policy := appsv1.ParallelPodManagement
	if l.option("ordered", "") != "" {
		policy = appsv1.OrderedReadyPodManagement
	}
	_, err = w.client.AppsV1().StatefulSets(meta.Namespace).Create(ctx, &appsv1.StatefulSet{ObjectMeta: meta,
		Spec: appsv1.StatefulSetSpec{Replicas: &n, Selector: ofSet(template.Labels[setLabel]), Template: template,
			PodManagementPolicy: policy}}, metav1.CreateOptions{})
	return err
}

// doJob creates an indexed Job whose pods all run at the same time.
func (w *world) doJob(ctx context.Context, l *line) error {
	meta, n, template, err := w.controlled(ctx, l)
	if err != nil {
		return err
	}
	template.Spec.RestartPolicy = v1.RestartPolicyNever
	job := &batchv1.Job{ObjectMeta: meta, Spec: batchv1.JobSpec{Parallelism: &n, Completions: &n,
		CompletionMode: ptr.To(batchv1.IndexedCompletion), Template: template}}
	if retries, err := strconv.Atoi(l.option("retries", "")); err == nil {
		job.Spec.BackoffLimitPerIndex = ptr.To(int32(retries))
	}
	job.Spec.Suspend = ptr.To(l.option("suspended", "") != "")
	_, err = w.client.BatchV1().Jobs(meta.Namespace).Create(ctx, job, metav1.CreateOptions{})
	return err
}

// doScale changes how many pods a controller has, or with suspended=no starts a Job.
func (w *world) doScale(ctx context.Context, l *line) (err error) {
	namespace, name := w.locate(l.arg(1))
	n, err := l.int(2)
	if err != nil {
		return err
	}
	replicas := fmt.Appendf(nil, `{"spec":{"replicas":%d}}`, n)
	switch l.arg(0) {
	case "replicaset":
		_, err = w.client.AppsV1().ReplicaSets(namespace).Patch(ctx, name, types.MergePatchType, replicas,
			metav1.PatchOptions{})
	case "statefulset":
		_, err = w.client.AppsV1().StatefulSets(namespace).Patch(ctx, name, types.MergePatchType, replicas,
			metav1.PatchOptions{})
	case "job":
		patch := fmt.Appendf(nil, `{"spec":{"parallelism":%d,"completions":%d,"suspend":false}}`, n, n)
		_, err = w.client.BatchV1().Jobs(namespace).Patch(ctx, name, types.MergePatchType, patch, metav1.PatchOptions{})
	default:
		return fmt.Errorf("scale what?")
	}
	return err
}
