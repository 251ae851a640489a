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

func newScript(t *testing.T, made ...runtime.Object) *script {
	t.Helper()
	s := &script{t: t, checker: invariants.New(0), pods: map[string]*v1.Pod{}}
	for _, obj := range made {
		s.checker.Observe(watch.Added, obj, nil)
	}
	return s
}

// pod makes a pod, of the Job if there is one.
func (s *script) pod(p history.Pod, of ...*batchv1.Job) {
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

// bind binds it, with these devices given to it.
func (s *script) bind(name, node string, milli int, devices ...int) {
	s.t.Helper()
	before := s.pods[name]
	after := before.DeepCopy()
	after.Spec.NodeName = node
	if len(devices) > 0 {
		keys := gpuview.DefaultKeys()
		asked, err := keys.PodGPURequest(after)
		if err != nil {
			s.t.Fatal(err)
		}
		assignment := gpuview.Assignment{Node: node, Devices: devices, Share: gpu.Share{Milli: milli}}
		annotations, record, err := gpuview.Answers(after, &asked, assignment, time.Now())
		if err != nil {
			s.t.Fatal(err)
		}
		for key, value := range annotations {
			if text, ok := value.(string); ok {
				metav1.SetMetaDataAnnotation(&after.ObjectMeta, key, text)
			}
		}
		after.Status.Conditions = append(after.Status.Conditions,
			v1.PodCondition{Type: gpuview.GPUsAssigned, Status: v1.ConditionTrue, Message: record})
	}
	s.pods[name] = after
	s.checker.Observe(watch.Modified, after, before)
}

func (s *script) finish(name string) {
	before := s.pods[name]
	after := before.DeepCopy()
	after.Status.Phase = v1.PodSucceeded
	s.pods[name] = after
	s.checker.Observe(watch.Modified, after, before)
}

// leave marks a pod as one on its way out.
func (s *script) leave(name string) {
	before := s.pods[name]
	after := before.DeepCopy()
	after.DeletionTimestamp = &metav1.Time{Time: time.Now()}
	s.pods[name] = after
	s.checker.Observe(watch.Modified, after, before)
}

// evict removes a pod for another one.
func (s *script) evict(name string) {
	s.pods[name] = s.pods[name].DeepCopy()
	s.pods[name].Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason: v1.PodReasonPreemptionByScheduler}}
	s.remove(name)
}

func (s *script) remove(name string) {
	s.checker.Observe(watch.Deleted, s.pods[name], s.pods[name])
}

func TestTheCheckerFindsWhatBreaksAPromise(t *testing.T) {
	t.Parallel()
	node := (&history.Node{Name: "n", GPUs: 2, Model: "m", Mode: history.SharedMode, CPUs: 4, MemGiB: 8}).Objects()[0]
	other := (&history.Node{Name: "o", GPUs: 2, Model: "m", Mode: history.WholeMode, CPUs: 4, MemGiB: 8}).Objects()[0]
	gang := (&history.Gang{Name: "g", MinMember: 2}).Object()
	roles := (&history.Gang{Name: "g", MinMember: 2, MinByRole: "leader=1,worker=1"}).Object()
	job := (&history.Gang{Job: true, Name: "g", MinMember: 2}).Object().(*batchv1.Job)
	job.UID = "1"
	rerun := job.DeepCopy()
	rerun.UID = "2"
	claim := func(name, device string) *resourcev1.ResourceClaim {
		c := (&history.Pod{Name: name, ClaimedGPUs: 1}).Objects()[0].(*resourcev1.ResourceClaim)
		c.Status.Allocation = &resourcev1.AllocationResult{Devices: resourcev1.DeviceAllocationResult{
			Results: []resourcev1.DeviceRequestAllocationResult{{Pool: "n", Device: device}},
		}}
		return c
	}
	for name, test := range map[string]struct {
		made []runtime.Object
		do   func(*script)
		want string
	}{
		"nothing": {do: func(*script) {}},
		"pods that fit": {do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliCPU: 2000})
			s.pod(history.Pod{Name: "b", MilliCPU: 2000})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
		}},
		"a pod too many": {want: invariants.OverCommitted, do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliCPU: 2000})
			s.pod(history.Pod{Name: "b", MilliCPU: 2001})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
		}},
		"a pod in the place of one that has finished": {do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliCPU: 4000})
			s.pod(history.Pod{Name: "b", MilliCPU: 4000})
			s.bind("a", "n", 0)
			s.finish("a")
			s.bind("b", "n", 0)
		}},
		"a node that has shrunk since the plan": {do: func(s *script) {
			small := node.DeepCopyObject().(*v1.Node)
			small.Status.Allocatable[v1.ResourceCPU] = resource.MustParse("1")
			s.pod(history.Pod{Name: "a", MilliCPU: 2000})
			s.checker.Observe(watch.Modified, small, node)
			s.bind("a", "n", 0)
		}},
		"whole GPUs beyond what there is": {want: invariants.OverCommitted, do: func(s *script) {
			s.pod(history.Pod{Name: "a", GPUs: 2})
			s.pod(history.Pod{Name: "b", GPUs: 1})
			s.bind("a", "o", 0)
			s.bind("b", "o", 0)
		}},
		"a second node": {want: invariants.BoundTwice, do: func(s *script) {
			s.pod(history.Pod{Name: "a"})
			s.bind("a", "n", 0)
			s.bind("a", "o", 0)
		}},
		"shares that fill a GPU": {do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliGPU: 500})
			s.pod(history.Pod{Name: "b", MilliGPU: 500})
			s.bind("a", "n", 500, 0)
			s.bind("b", "n", 500, 0)
		}},
		"shares beyond a GPU": {want: invariants.OverShared, do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliGPU: 600})
			s.pod(history.Pod{Name: "b", MilliGPU: 500})
			s.bind("a", "n", 600, 0)
			s.bind("b", "n", 500, 0)
		}},
		"a share without a GPU": {want: invariants.Unassigned, do: func(s *script) {
			s.pod(history.Pod{Name: "a", MilliGPU: 600})
			s.bind("a", "n", 0)
		}},
		"a device in two claims": {want: invariants.OverShared, made: []runtime.Object{claim("a", "gpu-0"),
			claim("b", "gpu-0")}, do: func(*script) {}},
		"a device that was given back": {made: []runtime.Object{claim("a", "gpu-0")}, do: func(s *script) {
			s.checker.Observe(watch.Deleted, claim("a", "gpu-0"), nil)
			s.checker.Observe(watch.Modified, claim("b", "gpu-0"), nil)
		}},
		"a gang": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
		}},
		"half a gang": {made: []runtime.Object{gang}, want: invariants.StartedInPart, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.bind("a", "n", 0)
		}},
		"half a gang while its other node is cordoned": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.bind("a", "n", 0)
			cordoned := other.(*v1.Node).DeepCopy()
			cordoned.Spec.Unschedulable = true
			s.checker.Observe(watch.Modified, cordoned, other)
		}},
		"half a gang while a node says that it is alive": {made: []runtime.Object{gang}, want: invariants.StartedInPart,
			do: func(s *script) {
				s.pod(history.Pod{Name: "a", Gang: "g"})
				s.pod(history.Pod{Name: "b", Gang: "g"})
				s.bind("a", "n", 0)
				alive := other.(*v1.Node).DeepCopy()
				alive.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
				s.checker.Observe(watch.Modified, alive, other)
			}},
		"a gang without its leader": {made: []runtime.Object{roles}, want: invariants.StartedInPart, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g", Role: "worker"})
			s.pod(history.Pod{Name: "b", Gang: "g", Role: "worker"})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
		}},
		"a Job": {made: []runtime.Object{job}, do: func(s *script) {
			s.pod(history.Pod{Name: "a"}, job)
			s.pod(history.Pod{Name: "b"}, job)
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
		}},
		"half a Job": {made: []runtime.Object{job}, want: invariants.StartedInPart, do: func(s *script) {
			s.pod(history.Pod{Name: "a"}, job)
			s.pod(history.Pod{Name: "b"}, job)
			s.bind("a", "n", 0)
		}},
		"half a Job beside a pod of the last one": {made: []runtime.Object{job}, want: invariants.StartedInPart,
			do: func(s *script) {
				for _, name := range []string{"a", "b"} {
					s.pod(history.Pod{Name: name}, job)
					s.bind(name, "n", 0)
				}
				s.checker.Observe(watch.Deleted, job, job)
				s.checker.Observe(watch.Added, rerun, nil)
				s.leave("a")
				s.pod(history.Pod{Name: "c"}, rerun)
				s.bind("c", "n", 0)
			}},
		"a gang that loses a member while it is bound": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.remove("b")
			s.bind("a", "n", 0)
		}},
		"a gang that comes again in part": {made: []runtime.Object{gang}, want: invariants.StartedInPart,
			do: func(s *script) {
				for _, name := range []string{"a", "b"} {
					s.pod(history.Pod{Name: name, Gang: "g"})
					s.bind(name, "n", 0)
				}
				s.remove("a")
				s.remove("b")
				s.pod(history.Pod{Name: "c", Gang: "g"})
				s.pod(history.Pod{Name: "d", Gang: "g"})
				s.bind("c", "n", 0)
			}},
		"a gang whose last member is on its way out": {made: []runtime.Object{gang}, want: invariants.StartedInPart,
			do: func(s *script) {
				for _, name := range []string{"a", "b"} {
					s.pod(history.Pod{Name: name, Gang: "g"})
					s.bind(name, "n", 0)
				}
				s.leave("a")
				s.leave("b")
				s.pod(history.Pod{Name: "c", Gang: "g"})
				s.bind("c", "n", 0)
			}},
		"a gang that gets a member while another is on its way out": {made: []runtime.Object{gang}, do: func(s *script) {
			for _, name := range []string{"a", "b"} {
				s.pod(history.Pod{Name: name, Gang: "g"})
				s.bind(name, "n", 0)
			}
			s.leave("a")
			s.pod(history.Pod{Name: "c", Gang: "g"})
			s.bind("c", "n", 0)
		}},
		"a gang that gets a larger minimum while it is bound": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.checker.Observe(watch.Modified, (&history.Gang{Name: "g", MinMember: 3}).Object(), gang)
			s.bind("a", "n", 0)
		}},
		"a gang that has lost a member": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
			s.remove("b")
		}},
		"a gang with one member that is evicted": {made: []runtime.Object{gang}, want: invariants.EvictedInPart,
			do: func(s *script) {
				s.pod(history.Pod{Name: "a", Gang: "g"})
				s.pod(history.Pod{Name: "b", Gang: "g"})
				s.bind("a", "n", 0)
				s.bind("b", "n", 0)
				s.evict("b")
			}},
		"a gang that is evicted": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.bind("a", "n", 0)
			s.bind("b", "n", 0)
			s.evict("b")
			s.evict("a")
		}},
		"a gang with one member that can be spared": {made: []runtime.Object{gang}, do: func(s *script) {
			for _, name := range []string{"a", "b", "c"} {
				s.pod(history.Pod{Name: name, Gang: "g"})
				s.bind(name, "n", 0)
			}
			s.evict("b")
		}},
		"a gang whose PodGroup was deleted": {made: []runtime.Object{gang}, do: func(s *script) {
			s.pod(history.Pod{Name: "a", Gang: "g"})
			s.pod(history.Pod{Name: "b", Gang: "g"})
			s.checker.Observe(watch.Deleted, gang, gang)
			s.bind("a", "n", 0)
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newScript(t, append([]runtime.Object{node, other}, test.made...)...)
			test.do(s)
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
	s.pod(history.Pod{Name: "gated", Gated: true})
	s.checker.Explained()
	if fault := s.checker.First(); fault != nil {
		t.Errorf("a pod with a gate: %v", fault)
	}
	s.pod(history.Pod{Name: "silent"})
	s.checker.Explained()
	if fault := s.checker.First(); fault == nil || fault.Kind != invariants.Unexplained {
		t.Errorf("fault %v, want %q", fault, invariants.Unexplained)
	}
}
