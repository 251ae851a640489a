package main

import (
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/watch"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// script is a row of changes that the API reports.
type script struct {
	t       *testing.T
	checker *invariants.Checker
	pods    map[string]*v1.Pod
}

// step is one or more of them.
type step func(*script)

func newScript(t *testing.T, made ...runtime.Object) *script {
	t.Helper()
	s := &script{t: t, checker: invariants.New(0), pods: map[string]*v1.Pod{}}
	for _, obj := range made {
		s.checker.Observe(watch.Added, obj, nil)
	}
	return s
}

// comes makes a pod, of the Job if there is one.
func (s *script) comes(p history.Pod, of ...*batchv1.Job) {
	p.Job = len(of) > 0
	objects := p.Objects()
	pod := objects[len(objects)-1].(*v1.Pod)
	pod.UID = types.UID(p.Name)
	for _, job := range of {
		belongsTo(pod, job)
	}
	s.pods[p.Name] = pod
	s.checker.Observe(watch.Added, pod, nil)
}

// change changes a pod.
func (s *script) change(name string, how func(pod *v1.Pod)) {
	before := s.pods[name]
	s.pods[name] = before.DeepCopy()
	how(s.pods[name])
	s.checker.Observe(watch.Modified, s.pods[name], before)
}

// each does something with some pods, one after the other.
func each(names []string, do func(s *script, name string)) step {
	return func(s *script) {
		for _, name := range names {
			do(s, name)
		}
	}
}

func come(of ...history.Pod) step {
	return func(s *script) {
		for _, p := range of {
			s.comes(p)
		}
	}
}

// members makes pods of the gang g.
func members(names ...string) step {
	return each(names, func(s *script, name string) { s.comes(history.Pod{Name: name, Gang: "g"}) })
}

func podsOf(job *batchv1.Job, names ...string) step {
	return each(names, func(s *script, name string) { s.comes(history.Pod{Name: name}, job) })
}

func bind(node string, names ...string) step {
	return each(names, func(s *script, name string) { s.change(name, func(pod *v1.Pod) { pod.Spec.NodeName = node }) })
}

// share binds a pod and gives it so much of GPU 0.
func share(name string, milli int) step {
	return func(s *script) {
		s.change(name, func(pod *v1.Pod) {
			pod.Spec.NodeName = "n"
			keys := gpuview.DefaultKeys()
			asked, err := keys.PodGPURequest(pod)
			if err != nil {
				s.t.Fatal(err)
			}
			assignment := gpuview.Assignment{Node: "n", Devices: []int{0}, Share: gpu.Share{Milli: milli}}
			_, record, err := gpuview.Answers(pod, &asked, assignment, time.Now())
			if err != nil {
				s.t.Fatal(err)
			}
			pod.Status.Conditions = []v1.PodCondition{{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue, Message: record}}
		})
	}
}

func finish(name string) step {
	return func(s *script) { s.change(name, func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }) }
}

// leave marks pods as on their way out.
func leave(names ...string) step {
	return each(names, func(s *script, name string) {
		s.change(name, func(pod *v1.Pod) { pod.DeletionTimestamp = &metav1.Time{Time: time.Now()} })
	})
}

func remove(names ...string) step {
	return each(names, func(s *script, name string) { s.checker.Observe(watch.Deleted, s.pods[name], s.pods[name]) })
}

// evict removes pods for others.
func evict(names ...string) step {
	return each(names, func(s *script, name string) {
		pod := s.pods[name].DeepCopy()
		pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
			Reason: v1.PodReasonPreemptionByScheduler}}
		s.checker.Observe(watch.Deleted, pod, pod)
	})
}

// happens reports another change.
func happens(event watch.EventType, object, old runtime.Object) step {
	return func(s *script) { s.checker.Observe(event, object, old) }
}

func TestTheCheckerFindsWhatBreaksAPromise(t *testing.T) {
	t.Parallel()
	node := (&history.Node{Name: "n", GPUs: 2, Model: "m", Mode: history.SharedMode, CPUs: 4, MemGiB: 8}).Objects()[0]
	other := (&history.Node{Name: "o", GPUs: 2, Model: "m", Mode: history.WholeMode, CPUs: 4, MemGiB: 8}).Objects()[0]
	changed := func(node runtime.Object, how func(*v1.Node)) step {
		now := node.DeepCopyObject().(*v1.Node)
		how(now)
		return happens(watch.Modified, now, node)
	}
	shrinks := changed(node, func(n *v1.Node) { n.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("1") })
	closes := changed(other, func(n *v1.Node) { n.Spec.Unschedulable = true })
	lives := changed(other, func(n *v1.Node) {
		n.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	})
	gang := (&history.Gang{Name: "g", MinMember: 2}).Object()
	grows := happens(watch.Modified, (&history.Gang{Name: "g", MinMember: 3}).Object(), gang)
	roles := (&history.Gang{Name: "g", MinMember: 2, MinByRole: "leader=1,worker=1"}).Object()
	workers := come(history.Pod{Name: "a", Gang: "g", Role: "worker"}, history.Pod{Name: "b", Gang: "g", Role: "worker"})
	job := (&history.Gang{Job: true, Name: "g", MinMember: 2}).Object().(*batchv1.Job)
	job.UID = "1"
	rerun := job.DeepCopy()
	rerun.UID = "2"
	claim := func(event watch.EventType, name string) step {
		c := (&history.Pod{Name: name, ClaimedGPUs: 1}).Objects()[0].(*resourcev1.ResourceClaim)
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Pool: "n", Device: "gpu-0"}},
		}}
		return happens(event, c, nil)
	}
	cpus := func(a, b int64) step {
		return come(history.Pod{Name: "a", MilliCPU: a}, history.Pod{Name: "b", MilliCPU: b})
	}
	shares := func(a, b int) step {
		return come(history.Pod{Name: "a", MilliGPU: a}, history.Pod{Name: "b", MilliGPU: b})
	}
	ab, runs := members("a", "b"), bind("n", "a", "b")
	for _, test := range []struct {
		name string
		// of is the gang g, if there is one.
		of   runtime.Object
		do   []step
		want string
	}{
		{"nothing", nil, nil, ""},
		{"pods that fit", nil, []step{cpus(2000, 2000), runs}, ""},
		{"a pod too many", nil, []step{cpus(2000, 2001), runs}, invariants.OverCommitted},
		{"a pod in the place of one that has finished", nil,
			[]step{cpus(4000, 4000), bind("n", "a"), finish("a"), bind("n", "b")}, ""},
		{"a node that has shrunk since the plan", nil, []step{cpus(2000, 2000), shrinks, bind("n", "a")}, ""},
		{"whole GPUs beyond what there is", nil,
			[]step{come(history.Pod{Name: "a", GPUs: 2}, history.Pod{Name: "b", GPUs: 1}), bind("o", "a", "b")},
			invariants.OverCommitted},
		{"a second node", nil, []step{cpus(1, 1), bind("n", "a"), bind("o", "a")}, invariants.BoundTwice},
		{"shares that fill a GPU", nil, []step{shares(500, 500), share("a", 500), share("b", 500)}, ""},
		{"shares beyond a GPU", nil, []step{shares(600, 500), share("a", 600), share("b", 500)}, invariants.OverShared},
		{"a share without a GPU", nil, []step{shares(600, 600), bind("n", "a")}, invariants.Unassigned},
		{"a device in two claims", nil, []step{claim(watch.Added, "a"), claim(watch.Added, "b")}, invariants.OverShared},
		{"a device that was given back", nil,
			[]step{claim(watch.Added, "a"), claim(watch.Deleted, "a"), claim(watch.Modified, "b")}, ""},

		{"a gang", gang, []step{ab, runs}, ""},
		{"half a gang", gang, []step{ab, bind("n", "a")}, invariants.StartedInPart},
		{"half a gang while its other node is cordoned", gang, []step{ab, bind("n", "a"), closes}, ""},
		{"half a gang while a node says that it is alive", gang, []step{ab, bind("n", "a"), lives}, invariants.StartedInPart},
		{"a gang without its leader", roles, []step{workers, runs}, invariants.StartedInPart},
		{"a Job", job, []step{podsOf(job, "a", "b"), runs}, ""},
		{"half a Job", job, []step{podsOf(job, "a", "b"), bind("n", "a")}, invariants.StartedInPart},
		{"half a Job beside a pod of the last one", job, []step{podsOf(job, "a", "b"), runs, happens(watch.Deleted, job, job),
			happens(watch.Added, rerun, nil), leave("a"), podsOf(rerun, "c"), bind("n", "c")}, invariants.StartedInPart},
		{"a gang that loses a member while it is bound", gang, []step{ab, remove("b"), bind("n", "a")}, ""},
		{"a gang that comes again in part", gang, []step{ab, runs, remove("a", "b"), members("c", "d"), bind("n", "c")},
			invariants.StartedInPart},
		{"a gang whose last member is on its way out", gang, []step{ab, runs, leave("a", "b"), members("c"), bind("n", "c")},
			invariants.StartedInPart},
		{"a gang that gets a member while another is on its way out", gang,
			[]step{ab, runs, leave("a"), members("c"), bind("n", "c")}, ""},
		{"a gang that gets a larger minimum while it is bound", gang, []step{members("a"), grows, bind("n", "a")}, ""},
		{"a gang that has lost a member", gang, []step{ab, runs, remove("b")}, ""},
		{"a gang with one member that is evicted", gang, []step{ab, runs, evict("b")}, invariants.EvictedInPart},
		{"a gang that is evicted", gang, []step{ab, runs, evict("b", "a")}, ""},
		{"a gang with one member that can be spared", gang, []step{members("a", "b", "c"), bind("n", "a", "b", "c"),
			evict("b")}, ""},
		{"a gang whose PodGroup was deleted", gang, []step{ab, happens(watch.Deleted, gang, gang), bind("n", "a")}, ""},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, node, other)
			if test.of != nil {
				s.checker.Observe(watch.Added, test.of, nil)
			}
			for _, do := range test.do {
				do(s)
			}
			s.checker.Tick()
			got := ""
			if fault := s.checker.First(); fault != nil {
				got = fault.Kind
			}
			if got != test.want {
				t.Errorf("fault %q, want %q: %v", got, test.want, s.checker.All())
			}
		})
	}
}

func TestAPodThatWaitsHasToSayWhy(t *testing.T) {
	t.Parallel()
	s := newScript(t)
	s.comes(history.Pod{Name: "gated", Gated: true})
	s.checker.Explained()
	if fault := s.checker.First(); fault != nil {
		t.Errorf("a pod with a gate: %v", fault)
	}
	s.comes(history.Pod{Name: "silent"})
	s.checker.Explained()
	if fault := s.checker.First(); fault == nil || fault.Kind != invariants.Unexplained {
		t.Errorf("fault %v, want %q", fault, invariants.Unexplained)
	}
}
