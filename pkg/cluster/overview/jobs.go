package overview

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/gang/work"
	"berth.dev/berth/pkg/podview"
)

// JobState is the state of a workload.
type JobState string

// The states of a workload, from the one that is furthest from running. Kueue ends Queued; a controller or the user
// ends Suspended, NoPods and Gated; the scheduler ends Pending and Partial.
const (
	JobQueued    JobState = "Queued"
	JobSuspended JobState = "Suspended"
	JobNoPods    JobState = "NoPods"
	JobGated     JobState = "Gated"
	JobPending   JobState = "Pending"
	JobPartial   JobState = "Partial"
	JobStarting  JobState = "Starting"
	JobRunning   JobState = "Running"
)

// Words is the state as part of a sentence.
func (s JobState) Words() string {
	if s == JobNoPods {
		return "without pods"
	}
	return strings.ToLower(string(s))
}

// Job is a workload that has not ended: the pods of one controller or of one gang, or a pod that has neither.
type Job struct {
	Namespace string `json:"namespace"`
	// Kind and Name are of the controller that users know: a Deployment, not its ReplicaSet. A gang of several
	// controllers is its PodGroup.
	Kind  string   `json:"kind"`
	Name  string   `json:"name"`
	State JobState `json:"state"`
	// Pods exist and have not ended, Scheduled of them have a node, and Running run.
	Pods      int `json:"pods"`
	Scheduled int `json:"scheduled"`
	Running   int `json:"running"`
	// MinMember pods start together, 0 if they are no gang.
	MinMember int `json:"minMember"`
	// MilliGPU is requested by all pods, ScheduledMilliGPU is allocated to those with a node.
	MilliGPU          int64 `json:"milliGPU"`
	ScheduledMilliGPU int64 `json:"scheduledMilliGPU"`
	// Nodes on which its pods are, in order, and the domains of those that are in one that is known.
	Nodes              []string         `json:"nodes"`
	Domains            []podview.Domain `json:"domains"`
	NodesWithoutDomain int              `json:"nodesWithoutDomain"`
	// AgeSeconds is the age of the oldest pod, or of the controller if it has no pods.
	AgeSeconds float64 `json:"ageSeconds"`
	// Reason is the scheduler's or Kueue's latest reason why it does not run; empty if all pods have a node.
	Reason string `json:"reason"`
	// Reserved says how many nodes are reserved for it, and when it starts if that is known.
	Reserved string `json:"reserved,omitempty"`
	// Late is a deadline that it can no longer keep, empty if there is none.
	Late string `json:"late,omitempty"`
	// Queue is its place in Kueue, nil without one.
	Queue *Place `json:"queue,omitempty"`
}

// jobKey names a workload.
type jobKey struct{ namespace, kind, name string }

// jobEntry is a workload while its pods are counted.
type jobEntry struct {
	Job
	since time.Time
	nodes map[string]bool
	gated int
	// failed is why the Job of a gang has failed, empty if it has not.
	failed string
	pod    string // the first that waits, in the order of names
	// scheduler is the name of the scheduler of that pod.
	scheduler string
}

// addJobs adds the workloads that have not ended, those first that are furthest from running.
func (s *snapshot) addJobs(c *Cluster, now time.Time) {
	jobs := map[jobKey]*jobEntry{}
	at := func(key jobKey) *jobEntry {
		if jobs[key] == nil {
			jobs[key] = &jobEntry{Job: Job{Namespace: key.namespace, Kind: key.kind, Name: key.name}, nodes: map[string]bool{}}
		}
		return jobs[key]
	}
	for id, g := range s.gangs {
		s.addGangJob(at, id, g)
	}
	for _, p := range s.pods {
		if p.gang == (gang.ID{}) && !podview.BelongsToNode(p.pod) {
			at(controllerKey(p.pod)).add(p)
		}
	}
	withPods := map[types.UID]bool{}
	for _, p := range s.pods {
		if owner := metav1.GetControllerOf(p.pod); owner != nil && !podview.Finished(p.pod) {
			withPods[owner.UID] = true
		}
	}
	for _, job := range s.jobs {
		suspended := ptr.Deref(job.Spec.Suspend, false)
		if jobCondition(job, batchv1.JobFailed) == nil && (suspended || !withPods[job.UID]) {
			at(jobKey{job.Namespace, "Job", job.Name}).addJob(job, suspended)
		}
	}
	s.queues.place(at)
	for _, key := range slices.SortedFunc(maps.Keys(jobs), compareKeys) {
		if j := jobs[key]; j.Pods > 0 || j.State != "" {
			c.Jobs = append(c.Jobs, j.finish(s, now))
		}
	}
	slices.SortStableFunc(c.Jobs, func(x, y Job) int {
		return cmp.Or(cmp.Compare(rank(x.State), rank(y.State)), -cmp.Compare(x.AgeSeconds, y.AgeSeconds))
	})
	c.Queues = s.queues.list(s.keys)
}

func compareKeys(x, y jobKey) int {
	return cmp.Or(cmp.Compare(x.namespace, y.namespace), compareNames(x.name, y.name), cmp.Compare(x.kind, y.kind))
}

// rank orders states: what waits for the scheduler comes first, what runs last.
func rank(state JobState) int {
	return slices.Index([]JobState{JobPartial, JobPending, JobQueued, JobSuspended, JobNoPods, JobGated, JobStarting,
		JobRunning}, state)
}

// addJob adds a Job that is suspended or has no pods. Others are known from their pods, which may be shown as a gang.
func (j *jobEntry) addJob(job *batchv1.Job, suspended bool) {
	if j.Pods == 0 {
		j.State, j.since = JobNoPods, job.CreationTimestamp.Time
	}
	if suspended {
		j.State = JobSuspended
	}
}

// jobCondition is that condition of the Job, nil unless it is true.
func jobCondition(job *batchv1.Job, kind batchv1.JobConditionType) *batchv1.JobCondition {
	at := slices.IndexFunc(job.Status.Conditions, func(c batchv1.JobCondition) bool {
		return c.Type == kind && c.Status == v1.ConditionTrue
	})
	if at < 0 {
		return nil
	}
	return &job.Status.Conditions[at]
}

// addGangJob adds a gang under the controller that all of its members share, or else under its own name.
func (s *snapshot) addGangJob(at func(jobKey) *jobEntry, id gang.ID, g *gangEntry) {
	shown := Gang{Namespace: id.Namespace, Name: id.Name}
	shown.describe(g)
	var alive []*podEntry
	for _, m := range g.members {
		if !podview.Finished(m.pod) {
			alive = append(alive, m)
		}
	}
	if len(alive) == 0 && (len(g.members) > 0 || g.ended()) {
		return
	}
	if len(alive) == 0 {
		s.addEmptyGang(at, id, g.group, shown.MinMember)
		return
	}
	j := at(g.key(id))
	for _, m := range alive {
		j.add(m)
		shown.MinMember = max(shown.MinMember, m.minimum)
	}
	j.MinMember += shown.MinMember
	j.Reason, j.Reserved = cmp.Or(ofGang(shown.Reason, id.Namespace, id.Name), j.Reason), shown.Reserved
	j.Late = cmp.Or(shown.Late, j.Late)
}

// addEmptyGang adds a gang without pods, under the Job for which its PodGroup was made, if there is one.
func (s *snapshot) addEmptyGang(at func(jobKey) *jobEntry, id gang.ID, group *schedulingv1alpha1.PodGroup,
	minimum int) {
	key := jobKey{id.Namespace, "PodGroup", id.Name}
	failed := ""
	for _, owner := range group.OwnerReferences {
		if owner.Kind != "Job" {
			continue
		}
		key.kind, key.name = owner.Kind, owner.Name
		if job := s.jobs[owner.UID]; job != nil {
			if c := jobCondition(job, batchv1.JobFailed); c != nil {
				failed = plainText(c.Message)
			}
		}
	}
	j := at(key)
	j.MinMember += minimum
	if j.Pods == 0 {
		j.State, j.since, j.failed = JobNoPods, group.CreationTimestamp.Time, failed
	}
}

// keyOf names the workload of a pod.
func (s *snapshot) keyOf(p *podEntry) jobKey {
	if g := s.gangs[p.gang]; g != nil {
		return g.key(p.gang)
	}
	return controllerKey(p.pod)
}

// key names the workload of a gang: the controller that all of its members share, or the gang itself.
func (g *gangEntry) key(id gang.ID) jobKey {
	if g.group != nil {
		if owner := metav1.GetControllerOf(g.group); owner != nil {
			return jobKey{id.Namespace, owner.Kind, owner.Name}
		}
	}
	var shared jobKey
	own := jobKey{id.Namespace, "PodGroup", id.Name}
	for _, m := range g.members {
		key := controllerKey(m.pod)
		if key.kind == "Pod" || shared != (jobKey{}) && shared != key {
			return own
		}
		shared = key
	}
	return cmp.Or(shared, own)
}

// add counts a pod that has not ended.
func (j *jobEntry) add(p *podEntry) {
	pod := p.pod
	j.Pods++
	j.MilliGPU += p.milli
	j.Late = cmp.Or(j.Late, plainText(work.Missed(pod)))
	if j.since.IsZero() || pod.CreationTimestamp.Time.Before(j.since) {
		j.since = pod.CreationTimestamp.Time
	}
	if pod.Spec.NodeName != "" {
		j.Scheduled++
		j.ScheduledMilliGPU += p.milli
		j.nodes[pod.Spec.NodeName] = true
		if pod.Status.Phase == v1.PodRunning {
			j.Running++
		}
		return
	}
	if len(pod.Spec.SchedulingGates) > 0 {
		j.gated++
	}
	if j.pod == "" || compareNames(pod.Name, j.pod) < 0 {
		j.pod, j.scheduler = pod.Name, pod.Spec.SchedulerName
		j.Reason = brief(podReason(pod))
	}
}

// finish sets the state, the place and the reason of the workload.
func (j *jobEntry) finish(s *snapshot, now time.Time) Job {
	switch {
	case j.Queue != nil && !j.Queue.Admitted && j.Scheduled == 0:
		j.State = JobQueued
	case j.State == JobSuspended, j.State == JobNoPods && j.Pods == 0:
	case j.gated > 0 && j.gated == j.Pods-j.Scheduled:
		j.State = JobGated
	case j.Scheduled == 0:
		j.State = JobPending
	case j.Scheduled < j.Pods:
		j.State = JobPartial
	case j.Running < j.Pods:
		j.State = JobStarting
	default:
		j.State = JobRunning
	}
	j.Nodes, j.Domains = slices.SortedFunc(maps.Keys(j.nodes), compareNames), []podview.Domain{}
	for _, name := range j.Nodes {
		var d podview.Domain
		if n := s.nodes[name]; n != nil && n.node != nil {
			d = s.levels.Narrowest(n.node)
		}
		if d.Level == "" {
			j.NodesWithoutDomain++
		} else {
			j.Domains = append(j.Domains, d)
		}
	}
	slices.SortFunc(j.Domains, podview.Domain.Compare)
	j.Domains = slices.Compact(j.Domains)
	j.AgeSeconds = max(0, now.Sub(j.since).Seconds())
	switch {
	case j.State == JobStarting || j.State == JobRunning:
		j.Reason, j.Reserved = "", ""
	case j.State == JobQueued:
		j.Reason = j.Queue.Reason
	case j.State == JobSuspended:
		j.Reason = "suspended by its spec"
	case j.State == JobNoPods && j.failed != "":
		j.Reason = "it has no pods, and its Job has failed: " + j.failed
	case j.State == JobNoPods:
		j.Reason = "it has no pods"
	case j.Reason == "" && j.scheduler == "":
		j.Reason = "not tried yet"
	case j.Reason == "":
		// The name may be misspelt: then no scheduler ever tries it.
		j.Reason = "not tried yet by " + j.scheduler
	}
	return j.Job
}

// controllerKey names the controller of a pod, or the pod itself.
func controllerKey(pod *v1.Pod) jobKey {
	kind, name := podview.WorkloadOf(pod)
	return jobKey{pod.Namespace, kind, name}
}

// JobList are the workloads of a cluster without its nodes.
type JobList struct {
	// Taken is the moment.
	Taken  time.Time `json:"taken"`
	Jobs   []Job     `json:"jobs"`
	Queues []Queue   `json:"queues"`
	// LeftOut are the kinds that could not be read, and devices that do not count yet, each with the reason.
	LeftOut []string `json:"leftOut"`
}

// JobList lists the workloads at this moment.
func (s *Store) JobList(now time.Time) *JobList {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.snapshot()
	c := &Cluster{LeftOut: s.leftOutOf(n)}
	n.addJobs(c, now)
	return &JobList{Taken: now, Jobs: c.Jobs, Queues: c.Queues, LeftOut: c.LeftOut}
}

// Where describes the nodes of the workload: one or two by name, else their number, and the domain or the number of
// domains if the domain of each node is known.
func (j *Job) Where() string {
	var where string
	switch n := len(j.Nodes); {
	case n == 0:
		return "-"
	case n <= 2:
		where = strings.Join(j.Nodes, ", ")
	default:
		where = fmt.Sprintf("%d nodes", n)
	}
	switch n := len(j.Domains); {
	case j.NodesWithoutDomain > 0:
	case n == 1:
		where += ", " + j.Domains[0].String()
	case n > 1:
		where += fmt.Sprintf(", %d ", n) + strings.TrimSpace(podview.CommonLevel(j.Domains)+" domains")
	}
	return where
}

// Why joins the reason why not all pods run, what is reserved for the workload, and a deadline that it misses.
func (j *Job) Why() string { return joined(j.Reason, j.Reserved, j.Late) }
