package read

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// OwnerState is what an object says about a gang of its pods.
type OwnerState struct {
	// APIVersion and UID are the object's, empty if it was not read yet. With the owner's kind and name they refer to it.
	APIVersion string
	UID        types.UID
	// Created is when the object was created, and Attempt how often it has started all its pods again.
	Created time.Time
	Attempt int
	// Minimum is the number of pods that have to start together: at least 1, or 0 if it is not known.
	Minimum int
	// Limit is after what time the controller ends the pods, 0 if it does not.
	Limit time.Duration
	// Why, if not empty, says in one sentence why the gang cannot start, whatever room there is: its controller will never
	// create enough pods, or the object says something that cannot be used.
	Why string
	// Says holds what else the object declares, as annotations of a PodGroup, which must not be changed. It is nil for
	// controllers that declare no more than a minimum. Unkept is what the object declares that is not followed.
	Says   map[string]string
	Unkept string
	// Class is the priority class that a group names. Lasting is set if its project evicts no group of a high priority.
	Class   string
	Lasting bool
	// Node is the place in a tree of an object of Kubernetes' own groups.
	Node grouptree.Node
}

// Outlived reports whether the pod is left over from an earlier run: of a deleted object of the same name, or of an
// attempt before the present one. Its controller deletes it, but pods of the present run may come before that.
// Objects that do not create their pods have no runs.
func (s *OwnerState) Outlived(kind string, pod *v1.Pod) bool {
	if attempt, err := strconv.Atoi(pod.Labels[restartAttemptLabel]); err == nil && attempt < s.Attempt {
		return true
	}
	switch controller := podview.ControllerOf(pod); {
	case controller == nil || s.UID == "":
		return false
	case controller.Kind == kind:
		return controller.UID != s.UID
	default:
		// The pods of Jobs say no more of the object than its name. Other controllers adopt pods that are older.
		return controller.Kind == "Job" && pod.CreationTimestamp.Time.Before(s.Created)
	}
}

// LeavingMinimum is the state of an object that leaves the minimum to the pods, which carry it.
func (s OwnerState) LeavingMinimum(o *Owner) OwnerState {
	switch {
	case o.MinimumKey == "":
		// Groups of a LeaderWorkerSet may have another size than new ones.
	case o.Minimum > s.Minimum:
		s.Why = fmt.Sprintf("%s %s %s", o.Kind, o.Name, tooMany(s.Minimum, o.Minimum, o.MinimumKey))
	case o.Minimum == 1 || o.Kind == "JobSet":
		s.Why = "" // those that come first may be enough
	}
	s.Minimum = 0
	return s
}

// tooMany says that an object has fewer pods than it asks for in the field or annotation.
func tooMany(pods, asked int, field string) string {
	return fmt.Sprintf("has %s and asks for %d (%s): a gang of %[2]d can never be complete; lower %[3]s",
		plural.Of(pods, "pod"), asked, field)
}

// lower has the gang of all pods of an object whose pods are alike start with fewer, if an annotation of it says so.
func (s *OwnerState) lower(r *objectReader, pods int) {
	for _, key := range []string{volcanoMinMember, kaiMinMember} {
		if !r.annotated("metadata", key) {
			continue
		}
		asked, ok := parseMinimum(r.annotation("metadata", key))
		switch {
		case !ok:
			r.fail("metadata.annotations."+key, r.annotation("metadata", key), allowedMinimum)
		case asked > pods:
			s.Why = fmt.Sprintf("%s %s %s", r.kind, r.name, tooMany(pods, asked, key))
		default:
			s.Minimum = min(s.Minimum, asked)
		}
		return
	}
}

// Annotations of JobSets and LeaderWorkerSets that give each Job or group a topology domain of its own.
const (
	// exclusiveTopologyKey lets the first pod of a Job choose the domain; the others are created when it is scheduled.
	exclusiveTopologyKey = "alpha.jobset.sigs.k8s.io/exclusive-topology"
	// nodeSelectorStrategyKey leaves the choice to labels of nodes, so that no pod waits for another.
	nodeSelectorStrategyKey = "alpha.jobset.sigs.k8s.io/node-selector"
	// lwsExclusiveTopologyKey lets the leader of a group choose the domain; the workers are created when it is scheduled.
	lwsExclusiveTopologyKey = "leaderworkerset.sigs.k8s.io/exclusive-topology"
	// lwsSubGroupTopologyKey gives each sub-group of a group a domain of its own.
	lwsSubGroupTopologyKey = "leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology"
)

// Values of the fields that say in which order pods are created.
const (
	orderedReady        = "OrderedReady"
	inOrder             = "InOrder"
	leaderReady         = "LeaderReady"
	waitForWorkersReady = "WaitForWorkersReady"
)

// never says why a gang can never be complete: how its controller creates the pods, and what to change.
func never(r *objectReader, how string, minimum int, remedy string) string {
	return fmt.Sprintf("%s %s %s: a gang of %d can never be complete; %s", r.kind, r.name, how, minimum, remedy)
}

// jobPods is how many pods of the Job whose spec is at the path run at a time: its parallelism, and no more than it has
// completions left. Indexes that have failed for good are lost and get no pods any more.
func jobPods(r *objectReader, spec, failedIndexes string) int {
	pods := r.number(spec+".parallelism", 1)
	if r.has(spec + ".completions") {
		completions := r.number(spec+".completions", 1)
		pods = min(pods, max(completions-countIndexes(failedIndexes), 0))
	}
	return pods
}

// exclusiveLevel is the node label whose domain each Job has for itself, by the annotations of the object at the path.
// The pods of such a Job wait for its first pod.
func exclusiveLevel(r *objectReader, metadata string) string {
	if level := r.annotation(metadata, exclusiveTopologyKey); !r.annotated(metadata, nodeSelectorStrategyKey) {
		return level
	}
	return ""
}

func readJob(r *objectReader) OwnerState {
	s := OwnerState{Minimum: jobPods(r, "spec", r.text("status.failedIndexes")), Limit: jobLimit(r)}
	s.lower(r, jobPods(r, "spec", ""))
	if level := exclusiveLevel(r, "spec.template.metadata"); level != "" && s.Minimum > 1 {
		s.startsWith(r, jobNameLabel, []grouptree.Group{exclusiveGroup(r.name, level)})
	}
	return s
}

// jobLimit is the Job's activeDeadlineSeconds. One that is longer than a pod may declare to run limits nothing.
func jobLimit(r *objectReader) time.Duration {
	const longest = 10 * 365 * 24 * 3600
	seconds, ok := r.field("spec.activeDeadlineSeconds").(int64)
	if !ok || seconds <= 0 || seconds > longest {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func readStatefulSet(r *objectReader) OwnerState {
	s := readReplicas(r)
	if policy := r.text("spec.podManagementPolicy"); (policy == "" || policy == orderedReady) && s.Minimum > 1 {
		s.Why = never(r, "creates its pods one after the other (podManagementPolicy: OrderedReady)", s.Minimum,
			"set podManagementPolicy: Parallel")
	}
	return s
}

func readReplicas(r *objectReader) OwnerState {
	s := OwnerState{Minimum: r.number("spec.replicas", 1)}
	s.lower(r, s.Minimum)
	return s
}

// readLeaderWorkerSet reads what holds for every group. The minimum of each is on its pods, since groups of different
// sizes exist while the set is updated.
func readLeaderWorkerSet(r *objectReader) OwnerState {
	s := OwnerState{Minimum: r.number("spec.leaderWorkerTemplate.size", 1)}
	switch {
	case s.Minimum < 2:
	case r.text("spec.startupPolicy") == leaderReady:
		s.Why = never(r, "creates the workers of a group when its leader is ready (startupPolicy: LeaderReady)", s.Minimum,
			"set startupPolicy: LeaderCreated")
	case r.annotation("metadata", lwsExclusiveTopologyKey) != "":
		s.startsWith(r, leaderWorkerSetNameLabel, []grouptree.Group{exclusiveGroup(r.name,
			r.annotation("metadata", lwsExclusiveTopologyKey))})
	case r.annotation("metadata", lwsSubGroupTopologyKey) != "":
		minimum := s.Minimum
		s.startsWith(r, leaderWorkerSetNameLabel+","+leaderWorkerSetSubGroupLabel, leaderWorkerSubGroups(r, minimum))
		s.Minimum = minimum
	}
	return s
}

// leaderWorkerSubGroups are the sub-groups of a group of a LeaderWorkerSet, each in a domain of its own. The leader is
// in the first, or in none.
func leaderWorkerSubGroups(r *objectReader, size int) []grouptree.Group {
	const policy = "spec.leaderWorkerTemplate.subGroupPolicy"
	each := r.number(policy+".subGroupSize", 0)
	if each < 2 {
		return nil
	}
	level := r.annotation("metadata", lwsSubGroupTopologyKey)
	excluded := r.text(policy+".subGroupPolicyType") == "LeaderExcluded"
	groups := make([]grouptree.Group, 0, min(size/each, maxGroups+1))
	for i := range cap(groups) {
		pods := each
		if i == 0 && !excluded && size%each == 1 {
			pods++
		}
		groups = append(groups, grouptree.Group{Name: fmt.Sprint(r.name, "-", i), Pods: &pods, Required: level, Alone: true})
	}
	return groups
}

// exclusiveGroup is a group of pods in a domain of its own. Its first pod starts it: the others are created when that
// has a node, and the controller ties them to its domain.
func exclusiveGroup(name, level string) grouptree.Group {
	return grouptree.Group{Name: name, Pods: ptr.To(1), Required: level, Alone: true}
}

// startsWith has the gang start with what the groups need, whatever its minimum. Pods name theirs by the values of
// labels, joined by commas.
func (s *OwnerState) startsWith(r *objectReader, labels string, groups []grouptree.Group) {
	if len(groups) > 0 {
		s.Minimum, s.Why = 1, ""
		s.needGroups(r, labels, groups)
	}
}

// jobSetLabels are those by which pods of a JobSet name their Job.
const jobSetLabels = replicatedJobNameLabel + ",jobset.sigs.k8s.io/job-index"

// readJobSet returns the states of the JobSet and of each replicated job.
func readJobSet(r *objectReader) map[string]OwnerState {
	states := map[string]OwnerState{}
	jobs := r.items("spec.replicatedJobs")
	all, depends := OwnerState{Attempt: r.number("status.restarts", 0)}, ""
	var groups []grouptree.Group
	exclusive := false
	for _, job := range jobs {
		each, copies, name := jobPods(job, "template.spec", ""), job.number("replicas", 1), job.text("name")
		s := OwnerState{Minimum: times(copies, each), Attempt: all.Attempt}
		all.Minimum = sum(all.Minimum, s.Minimum)
		if depends == "" && len(job.items("dependsOn")) > 0 {
			depends = name
		}
		of := grouptree.Group{Name: name, Copies: &copies, Pods: &each}
		level := cmp.Or(exclusiveLevel(r, "metadata"), exclusiveLevel(job, "template.metadata"))
		if level != "" && each > 1 && copies > 0 {
			exclusive = true
			of = exclusiveGroup(name, level)
			of.Copies = &copies
			s.startsWith(r, jobSetLabels, []grouptree.Group{of})
		}
		if copies > 0 {
			groups = append(groups, of)
		}
		states[name] = s
	}
	if exclusive {
		all.startsWith(r, jobSetLabels, groups)
	}
	switch {
	case len(jobs) > 1 && r.text("spec.startupPolicy.startupPolicyOrder") == inOrder:
		all.Why = never(r, "starts its replicated jobs one after the other (startupPolicyOrder: InOrder)", all.Minimum,
			"set startupPolicyOrder: AnyOrder, or jobSetPer: ReplicatedJob in gangOwners of the scheduler's configuration")
	case depends != "":
		all.Why = never(r, "creates replicated job "+depends+" after others (dependsOn)", all.Minimum,
			"remove dependsOn, or set jobSetPer: ReplicatedJob in gangOwners of the scheduler's configuration")
	}
	states[""] = all
	return states
}

// readTrainingJob reads a job of the training operator. The operator's own gangs have the same minimum.
func readTrainingJob(r *objectReader, replicas string) OwnerState {
	total, needed, types := 0, map[string]int{}, r.values("spec."+replicas)
	for _, name := range slices.Sorted(maps.Keys(types)) {
		n, role := types[name].number("replicas", 1), strings.ToLower(name)
		if total = sum(total, n); role != "worker" && role != "evaluator" {
			needed[role] = n
		}
	}
	return trainingState(r, total, ReplicaTypeLabel, needed)
}

// trainingState is that of a job with a number of pods. It may want fewer to start with; then the pods that the others
// depend on are among them, if it wants enough for these, or for the first of them.
func trainingState(r *objectReader, total int, roleKey string, needed map[string]int) OwnerState {
	const minAvailable = "spec.runPolicy.schedulingPolicy.minAvailable"
	s := OwnerState{Minimum: r.number(minAvailable, total)}
	if s.Minimum > total {
		s.Why = fmt.Sprintf("%s %s %s", r.kind, r.name, tooMany(total, s.Minimum, minAvailable))
	}
	if sum(slices.Collect(maps.Values(needed))...) > s.Minimum {
		maps.DeleteFunc(needed, func(role string, _ int) bool { return !slices.Contains(firstSets, role) })
	}
	if n := sum(slices.Collect(maps.Values(needed))...); n > 0 && n <= s.Minimum && s.Minimum < total {
		s.needRoles(r, roleKey, needed)
	}
	return s
}

// readMPIJob counts the launcher unless it is created when the workers are ready: then they are the gang, and the
// launcher is placed as it fits.
func readMPIJob(r *objectReader) OwnerState {
	pods, needed, roleKey := r.number("spec.mpiReplicaSpecs.Worker.replicas", 0), map[string]int{}, MPIRoleLabel
	if r.text("spec.launcherCreationPolicy") != waitForWorkersReady || pods == 0 {
		pods, needed["launcher"] = sum(pods, 1), 1
	}
	if r.text("apiVersion") == "kubeflow.org/v1" {
		roleKey = ReplicaTypeLabel // that of the training operator
	}
	return trainingState(r, pods, roleKey, needed)
}

// RayHead is how pods of a RayCluster call the group of the head.
const RayHead = "headgroup"

// readRayCluster counts the head and the workers of each group. A cluster that is scaled by Ray starts with the least
// that its groups may have, as Ray adds and removes the others. Groups that cannot be told apart count together.
func readRayCluster(r *objectReader) OwnerState {
	pods, roles, apart := 1, map[string]int{RayHead: 1}, true
	scaled := r.flag("spec.enableInTreeAutoscaling")
	for _, group := range r.items("spec.workerGroupSpecs") {
		least := group.number("minReplicas", 0)
		workers := group.number("replicas", least)
		if scaled {
			workers = least
		}
		if group.has("maxReplicas") {
			workers = min(workers, group.number("maxReplicas", 0))
		}
		workers = max(workers, least)
		if group.flag("suspend") {
			workers = 0
		}
		workers = times(workers, max(group.number("numOfHosts", 1), 1))
		pods = sum(pods, workers)
		name := group.text("groupName")
		_, twice := roles[name]
		apart = apart && !twice && name != "" && len(validation.IsValidLabelValue(name)) == 0 && workers <= maxMinMember
		roles[name] = workers
	}
	s := OwnerState{Minimum: pods}
	if maps.DeleteFunc(roles, func(_ string, n int) bool { return n == 0 }); apart && len(roles) <= maxRoles {
		s.needRoles(r, rayGroupLabel, roles)
	}
	return s
}
