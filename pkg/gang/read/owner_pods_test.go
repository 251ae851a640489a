package read

import (
	"fmt"
	"maps"
	"strconv"
	"strings"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/wellknown"
)

// ownedPod is a pod as a controller makes it for the object of that kind and name.
func ownedPod(name, apiVersion, kind, owner string, labels, annotations map[string]string) *v1.Pod {
	pod := st.MakePod().Namespace("ns").Name(name).UID(name).SchedulerName("gang-scheduler").
		Req(map[v1.ResourceName]string{"nvidia.com/gpu": "8"}).Obj()
	pod.Labels, pod.Annotations = labels, annotations
	pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: apiVersion, Kind: kind, Name: owner,
		UID: types.UID("uid-of-" + owner), Controller: ptr.To(true)}}
	return pod
}

// Pods as the usual controllers make them: the labels and annotations that their documentation lists, with the values
// that they have on the i-th pod of an object "train".

func jobPod(i int) *v1.Pod {
	index := strconv.Itoa(i)
	return ownedPod("train-"+index+"-abcde", "batch/v1", "Job", "train", map[string]string{
		"batch.kubernetes.io/controller-uid": "uid-of-train", "batch.kubernetes.io/job-name": "train",
		"controller-uid": "uid-of-train",
		"job-name":       "train", "batch.kubernetes.io/job-completion-index": index,
	}, map[string]string{"batch.kubernetes.io/job-completion-index": index,
		"batch.kubernetes.io/job-index-failure-count": strconv.Itoa(i % 2)})
}

func statefulSetPod(i int) *v1.Pod {
	name := "train-" + strconv.Itoa(i)
	return ownedPod(name, "apps/v1", "StatefulSet", "train",
		map[string]string{"app": "train", "apps.kubernetes.io/pod-index": strconv.Itoa(i),
			"statefulset.kubernetes.io/pod-name": name, "controller-revision-hash": "train-5d8f"}, nil)
}

// jobSetPod has two pods in each of its Jobs, the Jobs of one replicated job.
func jobSetPod(i int) *v1.Pod {
	job, pod := strconv.Itoa(i/2), strconv.Itoa(i%2)
	name := "train-workers-" + job
	both := map[string]string{
		"jobset.sigs.k8s.io/jobset-name": "train", "jobset.sigs.k8s.io/replicatedjob-name": "workers",
		"jobset.sigs.k8s.io/replicatedjob-replicas": "32",
		"jobset.sigs.k8s.io/global-replicas":        "32", "jobset.sigs.k8s.io/job-index": job,
		"jobset.sigs.k8s.io/job-global-index": job,
		"jobset.sigs.k8s.io/job-key":          "sha-of-" + name, "jobset.sigs.k8s.io/restart-attempt": "0",
		"jobset.sigs.k8s.io/group-name":     "default",
		"jobset.sigs.k8s.io/group-replicas": "32", "jobset.sigs.k8s.io/job-group-index": job,
		"batch.kubernetes.io/job-completion-index": pod,
	}
	labels := maps.Clone(both)
	for key, value := range map[string]string{"batch.kubernetes.io/controller-uid": "uid-of-" + name,
		"batch.kubernetes.io/job-name": name,
		"controller-uid":               "uid-of-" + name, "job-name": name} {
		labels[key] = value
	}
	return ownedPod(name+"-"+pod+"-abcde", "batch/v1", "Job", name, labels, both)
}

// leaderWorkerSetPod is a member of a group whose leader and workers have one template; the leader is the first.
func leaderWorkerSetPod(i int) *v1.Pod {
	index := strconv.Itoa(i)
	labels := map[string]string{"leaderworkerset.sigs.k8s.io/name": "train",
		"leaderworkerset.sigs.k8s.io/group-index": "3",
		"leaderworkerset.sigs.k8s.io/group-key":   "0a1b", "leaderworkerset.sigs.k8s.io/worker-index": index,
		"leaderworkerset.sigs.k8s.io/template-revision-hash": "77f",
		"leaderworkerset.sigs.k8s.io/subgroup-index":         strconv.Itoa(i / 4),
		"leaderworkerset.sigs.k8s.io/subgroup-key":           "key" + strconv.Itoa(i/4),
		"apps.kubernetes.io/pod-index":                       index}
	annotations := map[string]string{"leaderworkerset.sigs.k8s.io/size": "64",
		"leaderworkerset.sigs.k8s.io/subgroup-size": "4"}
	if i == 0 {
		labels["statefulset.kubernetes.io/pod-name"], labels["controller-revision-hash"] = "train-3", "train-1"
		return ownedPod("train-3", "apps/v1", "StatefulSet", "train", labels, annotations)
	}
	labels["statefulset.kubernetes.io/pod-name"], labels["controller-revision-hash"] = "train-3-"+index, "train-3-1"
	annotations["leaderworkerset.sigs.k8s.io/leader-name"] = "train-3"
	return ownedPod("train-3-"+index, "apps/v1", "StatefulSet", "train-3", labels, annotations)
}

func trainingPod(kind, operator, role string) func(i int) *v1.Pod {
	return func(i int) *v1.Pod {
		return ownedPod(fmt.Sprintf("train-%s-%d", role, i), "kubeflow.org/v1", kind, "train", map[string]string{
			"training.kubeflow.org/job-name": "train", "training.kubeflow.org/operator-name": operator,
			"training.kubeflow.org/replica-type": role, "training.kubeflow.org/replica-index": strconv.Itoa(i)}, nil)
	}
}

func mpiWorker(i int) *v1.Pod {
	return ownedPod("train-worker-"+strconv.Itoa(i), "kubeflow.org/v2beta1", "MPIJob", "train", map[string]string{
		"training.kubeflow.org/job-name": "train", "training.kubeflow.org/operator-name": "mpi-operator",
		"training.kubeflow.org/job-role": "worker", "training.kubeflow.org/replica-index": strconv.Itoa(i)}, nil)
}

func mpiLauncher() *v1.Pod {
	return ownedPod("train-launcher-abcde", "batch/v1", "Job", "train-launcher", map[string]string{
		"training.kubeflow.org/job-name": "train", "training.kubeflow.org/operator-name": "mpi-operator",
		"training.kubeflow.org/job-role": "launcher", "batch.kubernetes.io/job-name": "train-launcher"}, nil)
}

func rayPod(i int) *v1.Pod {
	return ownedPod("train-gpu-worker-"+strconv.Itoa(i), "ray.io/v1", "RayCluster", "train", map[string]string{
		"ray.io/cluster": "train", "ray.io/node-type": "worker", "ray.io/group": "gpu", "ray.io/is-ray-node": "yes",
		"ray.io/identifier": "train-worker", "ray.io/worker-group-replica-index": strconv.Itoa(i / 2),
		"ray.io/worker-group-replica-name": "gpu-" + strconv.Itoa(i/2), "ray.io/replica-host-index": strconv.Itoa(i % 2)},
		nil)
}

func replicaSetPod(i int) *v1.Pod {
	return ownedPod("train-5d8f-"+strconv.Itoa(i), "apps/v1", "ReplicaSet", "train-5d8f",
		map[string]string{"app": "train", "pod-template-hash": "5d8f"}, nil)
}

// asking is the pod with the annotation of a gang.
func asking(pod *v1.Pod, value string) *v1.Pod {
	annotations := map[string]string{wellknown.GangKey: value}
	maps.Copy(annotations, pod.Annotations)
	pod.Annotations = annotations
	return pod
}

func annotated(pod *v1.Pod, key, value string) *v1.Pod {
	metav1.SetMetaDataAnnotation(&pod.ObjectMeta, key, value)
	return pod
}

func with(pod *v1.Pod, edit func(*v1.Pod)) *v1.Pod {
	edit(pod)
	return pod
}

// everything covers every pod of every kind that a policy may name.
func everything(per JobSetPer) *OwnerPolicy {
	p := &OwnerPolicy{Kinds: map[string]bool{}, JobSetPer: per}
	for i := range ownerKinds {
		p.Kinds[ownerKinds[i].Kind] = !strings.HasPrefix(ownerKinds[i].Kind, "Replica")
	}
	return p
}
