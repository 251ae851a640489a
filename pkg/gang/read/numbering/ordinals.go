package numbering

import (
	"encoding/json"
	"hash/fnv"
	"maps"

	v1 "k8s.io/api/core/v1"
	corev1helpers "k8s.io/component-helpers/scheduling/corev1"

	"berth.dev/berth/pkg/podview"
	"berth.dev/berth/pkg/wellknown"
)

// ordinalKeys are the labels and annotations in which the pods of one set differ: their number, the hash of their own
// or their parent's name, their attempt. Pods that differ in nothing else are equal to filters and scores. If an
// affinity or topology spread of the pod refers to such a key, that term differs as well.
var ordinalKeys = map[string]bool{
	// Jobs. A JobSet makes several Jobs from one template, so their names and UIDs are ordinals, too.
	completionIndexKey: true,
	"batch.kubernetes.io/job-index-failure-count":         true,
	"batch.kubernetes.io/job-index-ignored-failure-count": true,
	"batch.kubernetes.io/job-name":                        true,
	"batch.kubernetes.io/controller-uid":                  true,
	"job-name":                                            true,
	"controller-uid":                                      true,
	// StatefulSets, ReplicaSets and DaemonSets.
	"apps.kubernetes.io/pod-index":       true,
	"statefulset.kubernetes.io/pod-name": true,
	"controller-revision-hash":           true,
	"pod-template-hash":                  true,
	// JobSet writes each of its keys as a label and as an annotation.
	"jobset.sigs.k8s.io/job-index":                true,
	"jobset.sigs.k8s.io/job-global-index":         true,
	"jobset.sigs.k8s.io/job-group-index":          true,
	"jobset.sigs.k8s.io/job-key":                  true,
	"jobset.sigs.k8s.io/restart-attempt":          true,
	"jobset.sigs.k8s.io/job-restart-attempt":      true,
	"jobset.sigs.k8s.io/in-place-restart-attempt": true,
	// LeaderWorkerSet. Its leaders and workers may have one template, and the last three then stand on one of them only.
	"leaderworkerset.sigs.k8s.io/worker-index":         true,
	"leaderworkerset.sigs.k8s.io/group-index":          true,
	"leaderworkerset.sigs.k8s.io/group-key":            true,
	"leaderworkerset.sigs.k8s.io/subgroup-index":       true,
	"leaderworkerset.sigs.k8s.io/subgroup-key":         true,
	"leaderworkerset.sigs.k8s.io/leader-name":          true,
	"leaderworkerset.sigs.k8s.io/subdomainPolicy":      true,
	"leaderworkerset.sigs.k8s.io/subgroup-policy-type": true,
	// The training operator and the MPI operator.
	"training.kubeflow.org/replica-index": true,
	// KubeRay from 1.5, and the index that its TPU webhook wrote before.
	"ray.io/worker-group-replica-index": true,
	"ray.io/worker-group-replica-name":  true,
	"ray.io/replica-host-index":         true,
	"replicaIndex":                      true,
	// Volcano, Grove and Kueue.
	"volcano.sh/task-index":              true,
	"volcano.sh/partition-id":            true,
	"grove.io/podclique-pod-index":       true,
	"kueue.x-k8s.io/pod-group-pod-index": true,
	// Copies of a group are equal. The copy of a pod is part of its role.
	wellknown.GroupKey: true,
	// It contains the whole object, with its name.
	v1.LastAppliedConfigAnnotation: true,
}

// withoutOrdinals returns m without ordinalKeys, and m itself if it has none.
func withoutOrdinals(m map[string]string) map[string]string {
	for key := range m {
		if ordinalKeys[key] {
			m = maps.Clone(m)
			maps.DeleteFunc(m, func(key, _ string) bool { return ordinalKeys[key] })
			return m
		}
	}
	return m
}

// IsOrdinal reports whether the pods of one set differ in the label.
func IsOrdinal(key string) bool { return ordinalKeys[key] }

// PlacementClass is equal for pods that are equal to filters and scores. It leaves out the labels by which controllers
// number pods; if they matter for a pod after all, its own scheduling cycle shows it.
func PlacementClass(pod *v1.Pod) string {
	class := struct {
		Scheduler                         string
		Priority                          int32
		Requests                          map[v1.ResourceName]int64
		NodeSelector, Labels, Annotations map[string]string             `json:",omitempty"`
		Tolerations                       []v1.Toleration               `json:",omitempty"`
		Affinity                          *v1.Affinity                  `json:",omitempty"`
		Spread                            []v1.TopologySpreadConstraint `json:",omitempty"`
		Volumes                           []v1.Volume                   `json:",omitempty"`
		Ports                             []v1.ContainerPort            `json:",omitempty"`
		Claims                            []v1.PodResourceClaim         `json:",omitempty"`
		OS                                *v1.PodOS                     `json:",omitempty"`
	}{Scheduler: pod.Spec.SchedulerName, Priority: corev1helpers.PodPriority(pod),
		Requests: map[v1.ResourceName]int64{}, NodeSelector: pod.Spec.NodeSelector,
		Labels: withoutOrdinals(pod.Labels), Annotations: withoutOrdinals(pod.Annotations),
		Tolerations: pod.Spec.Tolerations, Affinity: pod.Spec.Affinity, Spread: pod.Spec.TopologySpreadConstraints,
		Claims: pod.Spec.ResourceClaims, OS: pod.Spec.OS}
	for name, q := range podview.Requests(pod) { // a request of 0 differs from none
		class.Requests[name] = podview.Amount(name, q)
	}
	for _, v := range pod.Spec.Volumes {
		if v.PersistentVolumeClaim != nil || v.Ephemeral != nil || v.CSI != nil || v.ISCSI != nil || v.RBD != nil ||
			v.GCEPersistentDisk != nil || v.AWSElasticBlockStore != nil || v.AzureDisk != nil {
			class.Volumes = append(class.Volumes, v)
		}
	}
	for i := range pod.Spec.Containers {
		for _, p := range pod.Spec.Containers[i].Ports {
			if p.HostPort != 0 {
				class.Ports = append(class.Ports, p)
			}
		}
	}
	// Marshalling these types cannot fail; maps are written in the order of their keys.
	data, _ := json.Marshal(class)
	h := fnv.New128a()
	_, _ = h.Write(data)
	return string(h.Sum(nil))
}
