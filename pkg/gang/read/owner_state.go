package read

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/gang/read/fields"
	"berth.dev/berth/pkg/gang/read/grouptree"
	"berth.dev/berth/pkg/gang/read/numbering"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// OwnerState is what an object declares about a gang of its pods.
type OwnerState struct {
	// APIVersion and UID are the object's, empty if it was not read.
	APIVersion string
	UID        types.UID
	// Created is when the object was created, and Attempt how often it has restarted all its pods.
	Created time.Time
	Attempt int
	// Minimum is the number of pods that have to start together: at least 1, or 0 if it is not known.
	Minimum int
	// Limit is after what time the controller ends the pods, 0 if it does not.
	Limit time.Duration
	// Why is the message why the gang cannot start, however much capacity is free: its controller will never create enough
	// pods, or the object has a bad value. It is empty if the gang can start.
	Why string
	// Says has what else the object declares, as annotations of a PodGroup, which must not be changed; nil for controllers
	// that declare only a minimum. Unkept is what the object declares and Berth does not follow.
	Says   map[string]string
	Unkept string
	// Class is the priority class of a group. Lasting is set if its project evicts no group of a high priority.
	Class   string
	Lasting bool
	// Node is the place of a native group in its tree.
	Node grouptree.Node
}

// Outlived reports whether the pod is left over from an earlier run: of a deleted object of the same name, or of an
// earlier attempt. Its controller deletes it, perhaps after the pods of the current run were created. kind is that of
// the object, which must be the controller of its pods.
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
		// Pods of Jobs have only the name of the object. Other controllers adopt older pods.
		return controller.Kind == "Job" && pod.CreationTimestamp.Time.Before(s.Created)
	}
}

// LeavingMinimum is the state without a minimum, for an object whose pods carry it.
func (s OwnerState) LeavingMinimum(o *Owner) OwnerState {
	switch {
	case o.MinimumKey == "":
		// Existing groups of a LeaderWorkerSet may have another size than new ones.
	case o.Minimum > s.Minimum:
		s.Why = fmt.Sprintf("%s %s %s", o.Kind, o.Name, tooMany(s.Minimum, o.Minimum, o.MinimumKey))
	case o.Minimum == 1 || o.Kind == "JobSet":
		s.Why = "" // the pods that are created first may be enough
	}
	s.Minimum = 0
	return s
}

// tooMany is the message that an object asks for more pods, in the field or annotation, than it has.
func tooMany(pods, asked int, field string) string {
	return fmt.Sprintf("has %s and asks for %d (%s): a gang of %[2]d can never be complete; lower %[3]s",
		plural.Of(pods, "pod"), asked, field)
}

// lower reduces the minimum of an object whose pods are alike, if it has an annotation with a lower one.
func (s *OwnerState) lower(r *fields.Reader, pods int) {
	for _, key := range []string{volcanoMinMember, kaiMinMember} {
		value, found := r.Key("metadata.annotations", key)
		if !found {
			continue
		}
		asked, ok := parseMinimum(value)
		switch {
		case !ok:
			r.Fail("metadata.annotations."+key, value, allowedMinimum)
		case asked > pods:
			s.Why = fmt.Sprintf("%s %s %s", r.Kind, r.Name, tooMany(pods, asked, key))
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

// never is the message why a gang can never be complete: how its controller creates the pods, and what to change.
func never(r *fields.Reader, how string, minimum int, remedy string) string {
	return fmt.Sprintf("%s %s %s: a gang of %d can never be complete; %s", r.Kind, r.Name, how, minimum, remedy)
}

// jobPods returns how many pods of the Job with the spec at the path run at the same time: its parallelism, but no more
// than the completions that are left. Indexes that have failed get no pods anymore.
func jobPods(r *fields.Reader, spec, failedIndexes string) int {
	pods := r.Number(spec+".parallelism", 1)
	if r.Has(spec + ".completions") {
		completions := r.Number(spec+".completions", 1)
		pods = min(pods, max(completions-countIndexes(failedIndexes), 0))
	}
	return pods
}

// exclusiveLevel returns the node label whose domains take one Job each, by the annotations of the metadata.
// The pods of such a Job wait for its first pod.
func exclusiveLevel(r *fields.Reader, metadata string) string {
	level := r.Annotation(metadata, exclusiveTopologyKey)
	if _, byNodes := r.Key(metadata+".annotations", nodeSelectorStrategyKey); byNodes {
		return ""
	}
	return level
}

func readJob(r *fields.Reader) OwnerState {
	s := OwnerState{Minimum: jobPods(r, "spec", r.Text("status.failedIndexes")), Limit: jobLimit(r)}
	s.lower(r, jobPods(r, "spec", ""))
	if level := exclusiveLevel(r, "spec.template.metadata"); level != "" && s.Minimum > 1 {
		s.startsWith(r, jobNameLabel, []grouptree.Group{exclusiveGroup(r.Name, level)})
	}
	return s
}

// jobLimit returns the Job's activeDeadlineSeconds, 0 if it is longer than the longest run time that a pod may declare.
func jobLimit(r *fields.Reader) time.Duration {
	const longest = 10 * 365 * 24 * 3600
	seconds, ok := r.Field("spec.activeDeadlineSeconds").(int64)
	if !ok || seconds <= 0 || seconds > longest {
		return 0
	}
	return time.Duration(seconds) * time.Second
}

func readStatefulSet(r *fields.Reader) OwnerState {
	s := readReplicas(r)
	if policy := r.Text("spec.podManagementPolicy"); (policy == "" || policy == "OrderedReady") && s.Minimum > 1 {
		s.Why = never(r, "creates its pods one after the other (podManagementPolicy: OrderedReady)", s.Minimum,
			"set podManagementPolicy: Parallel")
	}
	return s
}

func readReplicas(r *fields.Reader) OwnerState {
	s := OwnerState{Minimum: r.Number("spec.replicas", 1)}
	s.lower(r, s.Minimum)
	return s
}

// readLeaderWorkerSet reads the state of every group. The minimum of each is on its pods, because groups of different
// sizes exist during an update.
func readLeaderWorkerSet(r *fields.Reader) OwnerState {
	s := OwnerState{Minimum: r.Number("spec.leaderWorkerTemplate.size", 1)}
	switch {
	case s.Minimum < 2:
	case r.Text("spec.startupPolicy") == "LeaderReady":
		s.Why = never(r, "creates the workers of a group when its leader is ready (startupPolicy: LeaderReady)", s.Minimum,
			"set startupPolicy: LeaderCreated")
	case r.Annotation("metadata", lwsExclusiveTopologyKey) != "":
		s.startsWith(r, leaderWorkerSetNameLabel, []grouptree.Group{exclusiveGroup(r.Name,
			r.Annotation("metadata", lwsExclusiveTopologyKey))})
	case r.Annotation("metadata", lwsSubGroupTopologyKey) != "":
		minimum := s.Minimum
		s.startsWith(r, leaderWorkerSetNameLabel+","+leaderWorkerSetSubGroupLabel, leaderWorkerSubGroups(r, minimum))
		s.Minimum = minimum
	}
	return s
}

// leaderWorkerSubGroups returns the sub-groups of a group of a LeaderWorkerSet, each in its own domain. The leader is
// in the first, or in none.
func leaderWorkerSubGroups(r *fields.Reader, size int) []grouptree.Group {
	const policy = "spec.leaderWorkerTemplate.subGroupPolicy"
	each := r.Number(policy+".subGroupSize", 0)
	if each < 2 {
		return nil
	}
	level := r.Annotation("metadata", lwsSubGroupTopologyKey)
	excluded := r.Text(policy+".subGroupPolicyType") == "LeaderExcluded"
	groups := make([]grouptree.Group, 0, min(size/each, maxGroups+1))
	for i := range cap(groups) {
		pods := each
		if i == 0 && !excluded && size%each == 1 {
			pods++
		}
		groups = append(groups, grouptree.Group{Name: fmt.Sprint(r.Name, "-", i), Pods: &pods, Required: level, Alone: true})
	}
	return groups
}

// exclusiveGroup is a group of pods in its own domain. The first pod starts it: when that has a node, the controller
// creates the others and binds them to its domain.
func exclusiveGroup(name, level string) grouptree.Group {
	return grouptree.Group{Name: name, Pods: ptr.To(1), Required: level, Alone: true}
}

// startsWith replaces the minimum of the gang by what the groups need. labels are joined by commas.
func (s *OwnerState) startsWith(r *fields.Reader, labels string, groups []grouptree.Group) {
	if len(groups) > 0 {
		s.Minimum, s.Why = 1, ""
		s.needGroups(r, labels, groups)
	}
}

// jobSetLabels are those by which pods of a JobSet name their Job.
const jobSetLabels = replicatedJobNameLabel + ",jobset.sigs.k8s.io/job-index"

// readJobSet returns the states of the JobSet and of each replicated job.
func readJobSet(r *fields.Reader) map[string]OwnerState {
	states := map[string]OwnerState{}
	jobs := r.Items("spec.replicatedJobs")
	all, depends := OwnerState{Attempt: r.Number("status.restarts", 0)}, ""
	var groups []grouptree.Group
	exclusive := false
	for _, job := range jobs {
		each, copies, name := jobPods(job, "template.spec", ""), job.Number("replicas", 1), job.Text("name")
		s := OwnerState{Minimum: times(copies, each), Attempt: all.Attempt}
		all.Minimum = sum(all.Minimum, s.Minimum)
		if depends == "" && len(job.Items("dependsOn")) > 0 {
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
	case len(jobs) > 1 && r.Text("spec.startupPolicy.startupPolicyOrder") == "InOrder":
		all.Why = never(r, "starts its replicated jobs one after the other (startupPolicyOrder: InOrder)", all.Minimum,
			"set startupPolicyOrder: AnyOrder, or jobSetPer: ReplicatedJob in gangOwners of the scheduler's configuration")
	case depends != "":
		all.Why = never(r, "creates replicated job "+depends+" after others (dependsOn)", all.Minimum,
			"remove dependsOn, or set jobSetPer: ReplicatedJob in gangOwners of the scheduler's configuration")
	}
	states[""] = all
	return states
}

// readTrainingJob reads a job of the training operator, whose own gangs have the same minimum.
func readTrainingJob(r *fields.Reader, replicas string) OwnerState {
	total, needed, types := 0, map[string]int{}, r.Values("spec."+replicas)
	for _, name := range slices.Sorted(maps.Keys(types)) {
		n, role := types[name].Number("replicas", 1), strings.ToLower(name)
		if total = sum(total, n); role != "worker" && role != "evaluator" {
			needed[role] = n
		}
	}
	return trainingState(r, total, ReplicaTypeLabel, needed)
}

// trainingState is the state of a job with a number of pods. Its minimum may be lower; it then includes the needed
// roles if it is large enough, or else the first of them.
func trainingState(r *fields.Reader, total int, roleKey string, needed map[string]int) OwnerState {
	const minAvailable = "spec.runPolicy.schedulingPolicy.minAvailable"
	s := OwnerState{Minimum: r.Number(minAvailable, total)}
	if s.Minimum > total {
		s.Why = fmt.Sprintf("%s %s %s", r.Kind, r.Name, tooMany(total, s.Minimum, minAvailable))
	}
	if sum(slices.Collect(maps.Values(needed))...) > s.Minimum {
		maps.DeleteFunc(needed, func(role string, _ int) bool { return !numbering.IsFirst(role) })
	}
	if n := sum(slices.Collect(maps.Values(needed))...); n > 0 && n <= s.Minimum && s.Minimum < total {
		s.needRoles(r, roleKey, needed)
	}
	return s
}

// readMPIJob counts the launcher, unless it is created when the workers are ready: then only these are the gang.
func readMPIJob(r *fields.Reader) OwnerState {
	pods, needed, roleKey := r.Number("spec.mpiReplicaSpecs.Worker.replicas", 0), map[string]int{}, MPIRoleLabel
	if r.Text("spec.launcherCreationPolicy") != "WaitForWorkersReady" || pods == 0 {
		pods, needed["launcher"] = sum(pods, 1), 1
	}
	if r.Text("apiVersion") == "kubeflow.org/v1" {
		roleKey = ReplicaTypeLabel // that of the training operator
	}
	return trainingState(r, pods, roleKey, needed)
}

// RayHead is the group of the head in the labels of pods of a RayCluster.
const RayHead = "headgroup"

// readRayCluster counts the head and the workers of each group. With autoscaling, the minimum of each group counts,
// because Ray adds and removes the others. Groups without distinct valid names count together.
func readRayCluster(r *fields.Reader) OwnerState {
	pods, roles, apart := 1, map[string]int{RayHead: 1}, true
	scaled := r.Flag("spec.enableInTreeAutoscaling")
	for _, group := range r.Items("spec.workerGroupSpecs") {
		least := group.Number("minReplicas", 0)
		workers := group.Number("replicas", least)
		if scaled {
			workers = least
		}
		if group.Has("maxReplicas") {
			workers = min(workers, group.Number("maxReplicas", 0))
		}
		workers = max(workers, least)
		if group.Flag("suspend") {
			workers = 0
		}
		workers = times(workers, max(group.Number("numOfHosts", 1), 1))
		pods = sum(pods, workers)
		name := group.Text("groupName")
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

// sum adds numbers of pods that fit 32 bits each, without wrapping around.
func sum(counts ...int) int {
	total := 0
	for _, n := range counts {
		total = min(total+n, math.MaxInt32)
	}
	return total
}

// times multiplies two numbers of at most 32 bits without wrapping around.
func times(a, b int) int { return int(min(int64(a)*int64(b), math.MaxInt32)) }

// countIndexes counts the indexes in a list such as "1,3-5,7" from the status of a Job. It ignores bad items.
func countIndexes(text string) int {
	count := 0
	for item := range strings.SplitSeq(text, ",") {
		first, last, interval := strings.Cut(item, "-")
		if !interval {
			last = first
		}
		from, err1 := strconv.ParseUint(first, 10, 31)
		to, err2 := strconv.ParseUint(last, 10, 31)
		if err1 == nil && err2 == nil && from <= to {
			count = sum(count, int(to-from+1))
		}
	}
	return count
}
