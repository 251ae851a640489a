package read

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/podview"
)

// Labels and annotations of controllers that tell which object a pod belongs to. They are part of these projects' APIs.
const (
	jobSetNameLabel        = "jobset.sigs.k8s.io/jobset-name"
	replicatedJobNameLabel = "jobset.sigs.k8s.io/replicatedjob-name"
	restartAttemptLabel    = "jobset.sigs.k8s.io/restart-attempt"

	leaderWorkerSet           = "LeaderWorkerSet"
	leaderWorkerSetNameLabel  = "leaderworkerset.sigs.k8s.io/name"
	leaderWorkerSetGroupLabel = "leaderworkerset.sigs.k8s.io/group-key"
	leaderWorkerSetIndexLabel = "leaderworkerset.sigs.k8s.io/group-index"
	LeaderWorkerSetSizeKey    = "leaderworkerset.sigs.k8s.io/size"
	// leaderWorkerSetSubGroupLabel is on the pods of sub-groups only.
	leaderWorkerSetSubGroupLabel = "leaderworkerset.sigs.k8s.io/subgroup-index"

	trainingJobLabel      = "training.kubeflow.org/job-name"
	TrainingOperatorLabel = "training.kubeflow.org/operator-name"
	mpiOperator           = "mpi-operator"

	jobNameLabel    = "batch.kubernetes.io/job-name"
	rayClusterLabel = "ray.io/cluster"
	// Labels with the pod's part of the object: the type of a replica, launcher or worker, a group.
	ReplicaTypeLabel = "training.kubeflow.org/replica-type"
	MPIRoleLabel     = "training.kubeflow.org/job-role"
	rayGroupLabel    = "ray.io/group"
)

// OwnerKind is a kind of object whose pods can form a gang.
type OwnerKind struct {
	Kind string
	schema.GroupResource
	// Object is the kind in the API if Kind is not: groups of several projects are called PodGroup. It is set for groups
	// and empty for controllers.
	Object string
	// Versions are the API versions that can be read, the newest first. A cluster serves at least one of them.
	Versions []string
	// EndedLabel selects the pods of the kind's objects that have ended, which the scheduler's informer leaves out. It is
	// empty for kinds whose pods never end: a pod that ends anyway is replaced.
	EndedLabel string
	// nameKeys are the annotations, or for Grove the label, by which pods name their group.
	nameKeys []string
	// replicas is the field of a training job that lists its replicas.
	replicas string
}

// ownerKinds begins with kinds that are known by labels, because the controllers of their pods are objects of other
// kinds in this list. So the widest gang counts.
var ownerKinds = []OwnerKind{
	ownerKind(leaderWorkerSet, "leaderworkerset.x-k8s.io", "", "v1"),
	ownerKind("JobSet", "jobset.x-k8s.io", jobNameLabel, "v1alpha2"),
	ownerKind("MPIJob", "kubeflow.org", trainingJobLabel, "v2beta1", "v1"),
	ownerKind("RayCluster", "ray.io", rayClusterLabel, "v1", "v1alpha1"),
	trainingKind("PyTorchJob", "pytorchReplicaSpecs"),
	trainingKind("TFJob", "tfReplicaSpecs"),
	trainingKind("XGBoostJob", "xgbReplicaSpecs"),
	trainingKind("PaddleJob", "paddleReplicaSpecs"),
	trainingKind("MXJob", "mxReplicaSpecs"),
	trainingKind("JAXJob", "jaxReplicaSpecs"),
	ownerKind("Job", "batch", jobNameLabel, "v1"),
	ownerKind("StatefulSet", "apps", "", "v1"),
	ownerKind("ReplicaSet", "apps", "", "v1"),
	ownerKind("ReplicationController", "", "", "v1"),
}

func ownerKind(kind, group, endedLabel string, versions ...string) OwnerKind {
	return OwnerKind{Kind: kind, GroupResource: schema.GroupResource{Group: group, Resource: strings.ToLower(kind) + "s"},
		Versions: versions, EndedLabel: endedLabel}
}

// trainingKind is a kind of Kubeflow's training operator. They differ in the field that lists their replicas.
func trainingKind(kind, replicas string) OwnerKind {
	k := ownerKind(kind, "kubeflow.org", trainingJobLabel, "v1")
	k.replicas = replicas
	return k
}

// read reads an object of the kind. The state under the empty name is for all its pods, the others are for its parts,
// which only a JobSet has.
func (k *OwnerKind) read(r *fields.Reader) map[string]OwnerState {
	if k.Kind == "JobSet" {
		return readJobSet(r)
	}
	return map[string]OwnerState{"": k.readWhole(r)}
}

func (k *OwnerKind) readWhole(r *fields.Reader) OwnerState {
	switch k.Kind {
	case leaderWorkerSet:
		return readLeaderWorkerSet(r)
	case "MPIJob":
		return readMPIJob(r)
	case "RayCluster":
		return readRayCluster(r)
	case "Job":
		return readJob(r)
	case "StatefulSet":
		return readStatefulSet(r)
	case "ReplicaSet", "ReplicationController":
		return readReplicas(r)
	case NativeGroup:
		// Without a minimum the policy is basic: pods start one by one, unless they declare a gang themselves.
		return readNativeGroup(r, "spec.schedulingPolicy.gang.minCount")
	case CompositeGroup:
		return readNativeGroup(r, "spec.schedulingPolicy.gang.minGroupCount")
	case VolcanoGroup:
		return readVolcanoGroup(r)
	case KAIGroup:
		return readKAIGroup(r)
	case GroveGang:
		return readGroveGang(r)
	}
	return readTrainingJob(r, k.replicas)
}

// OwnerKinds returns the kinds of objects whose controllers create pods that can form a gang.
func OwnerKinds() []OwnerKind { return slices.Clone(ownerKinds) }

// OwnerKindOf returns the kind of that name, of controllers or of groups.
func OwnerKindOf(kind string) (*OwnerKind, bool) {
	for _, kinds := range [][]OwnerKind{ownerKinds, groupKinds} {
		for i := range kinds {
			if kinds[i].Kind == kind {
				return &kinds[i], true
			}
		}
	}
	return nil, false
}

// Title names the kind in messages.
func (k *OwnerKind) Title() string {
	switch {
	case k.Object == "":
		return k.Kind
	case strings.HasPrefix(k.Object, k.Kind):
		return k.Object
	}
	return k.Kind + " " + k.Object
}

// OwnerKindNames returns the names of OwnerKinds.
func OwnerKindNames() []string {
	names := make([]string, 0, len(ownerKinds))
	for i := range ownerKinds {
		names = append(names, ownerKinds[i].Kind)
	}
	return names
}

// States reads an object of the kind: the state for the gang of all its pods, under the empty name, and for those of
// its parts. Bad values are in Why of the states.
func (k *OwnerKind) States(obj *unstructured.Unstructured) map[string]OwnerState {
	r := fields.Of(k.Title(), obj.GetName(), obj.Object)
	states := k.read(r)
	for part, s := range states {
		s.APIVersion, s.UID, s.Created = obj.GetAPIVersion(), obj.GetUID(), obj.GetCreationTimestamp().Time
		if k.Object != "" {
			maps.Copy(s.Says, ownAnnotations(obj))
		}
		if s.Minimum > maxMinMember {
			s.Why = fmt.Sprintf("%s %s asks for %d pods; a gang has %d at most", k.Title(), obj.GetName(), s.Minimum,
				maxMinMember)
		}
		s.Minimum = min(max(s.Minimum, 1), maxMinMember)
		if err := r.Err(); err != nil {
			s.Why = fmt.Sprintf("%s %s: %v", k.Title(), obj.GetName(), err)
		}
		states[part] = s
	}
	return states
}

// Keep returns a copy of an object of the kind with only its identity and the fields that States reads.
func (k *OwnerKind) Keep(obj *unstructured.Unstructured) *unstructured.Unstructured {
	r := fields.Of(k.Title(), obj.GetName(), obj.Object)
	r.Note()
	k.read(r)
	kept := &unstructured.Unstructured{Object: r.Noted()}
	kept.SetAPIVersion(obj.GetAPIVersion())
	kept.SetKind(obj.GetKind())
	kept.SetNamespace(obj.GetNamespace())
	kept.SetName(obj.GetName())
	kept.SetUID(obj.GetUID())
	kept.SetCreationTimestamp(obj.GetCreationTimestamp())
	if k.Object != "" {
		annotations := ownAnnotations(obj)
		if read := kept.GetAnnotations(); read != nil {
			maps.Copy(read, annotations)
			annotations = read
		}
		kept.SetAnnotations(annotations)
	}
	return kept
}

// ownerOf returns the object of the kind that the pod belongs to, or an Owner without a kind. It is not for kinds of
// groups.
func (k *OwnerKind) ownerOf(p *OwnerPolicy, pod *v1.Pod, by controlledBy) (Owner, error) {
	switch k.Kind {
	case leaderWorkerSet:
		return leaderWorkerSetOf(pod)
	case "JobSet":
		return jobSetOf(p, pod, by)
	case "MPIJob":
		if by.isJob() {
			return mpiJobOf(pod)
		}
	}
	if by.Kind != k.Kind || by.group != k.Group {
		return Owner{}, nil
	}
	return controllerOf(by)
}

// controllerOf is the controller as the owner of its pods.
func controllerOf(by controlledBy) (Owner, error) {
	if !isSubdomain(by.Name) {
		return Owner{}, fmt.Errorf("pod owner reference: %.120q is not the name of a %s", by.Name, by.Kind)
	}
	return Owner{Kind: by.Kind, Name: by.Name}, nil
}

func jobSetOf(p *OwnerPolicy, pod *v1.Pod, by controlledBy) (Owner, error) {
	if pod.Labels[jobSetNameLabel] == "" || !by.isJob() {
		return Owner{}, nil
	}
	if p != nil && p.JobSetPer == PerReplica {
		return controllerOf(by)
	}
	name, err := named(pod, jobSetNameLabel, "the name of a JobSet")
	if err != nil {
		return Owner{}, err
	}
	o := Owner{Kind: "JobSet", Name: name}
	if p != nil && p.JobSetPer == PerReplicatedJob {
		if o.Part, err = named(pod, replicatedJobNameLabel, "the name of a replicated job"); err != nil {
			return Owner{}, err
		}
	}
	return o, nil
}

func leaderWorkerSetOf(pod *v1.Pod) (Owner, error) {
	key := pod.Labels[leaderWorkerSetGroupLabel]
	if key == "" || pod.Labels[leaderWorkerSetNameLabel] == "" {
		return Owner{}, nil
	}
	name, err := named(pod, leaderWorkerSetNameLabel, "the name of a LeaderWorkerSet")
	if err != nil {
		return Owner{}, err
	}
	group, err := named(pod, leaderWorkerSetIndexLabel, "the index of a group")
	if err != nil {
		return Owner{}, err
	}
	minimum, ok := parseMinimum(pod.Annotations[LeaderWorkerSetSizeKey])
	if !ok {
		return Owner{}, podview.BadAnnotation(pod, LeaderWorkerSetSizeKey, allowedMinimum)
	}
	if pod.Annotations[lwsExclusiveTopologyKey] != "" || pod.Annotations[lwsSubGroupTopologyKey] != "" {
		minimum = 0 // the object tells which pods have to start together, and where
	}
	return Owner{Kind: leaderWorkerSet, Name: name, Part: group, Minimum: minimum}, nil
}

// mpiJobOf returns the owner of a pod of a Job: the MPI operator's launcher has one, while the MPIJob itself controls
// its workers and all pods of the training operator.
func mpiJobOf(pod *v1.Pod) (Owner, error) {
	if pod.Labels[TrainingOperatorLabel] != mpiOperator || pod.Labels[trainingJobLabel] == "" {
		return Owner{}, nil
	}
	name, err := named(pod, trainingJobLabel, "the name of an MPIJob")
	return Owner{Kind: "MPIJob", Name: name}, err
}
