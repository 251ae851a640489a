package read

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation"
	st "k8s.io/kubernetes/pkg/scheduler/testing"
	"k8s.io/utils/ptr"
	"pgregory.net/rapid"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
)

func TestGangOfAController(t *testing.T) {
	t.Parallel()
	only := func(kinds ...string) *OwnerPolicy {
		p := &OwnerPolicy{Kinds: map[string]bool{}}
		for _, kind := range kinds {
			p.Kinds[kind] = true
		}
		return p
	}
	within := func(namespace, profile string) *OwnerPolicy {
		p := only("Job")
		p.Namespaces, p.Profiles = map[string]bool{namespace: true}, map[string]bool{profile: true}
		return p
	}
	owner := func(kind, name, part string, minimum int) Owner {
		return Owner{Kind: kind, Namespace: "ns", Name: name, Part: part, Minimum: minimum}
	}
	counted := func(o Owner, key string) Owner {
		o.MinimumKey = key
		return o
	}
	for _, tc := range []struct {
		name   string
		policy *OwnerPolicy
		pod    *v1.Pod
		gang   string
		owner  Owner
		err    string
	}{
		{"without a policy the pods of a Job are in no gang", nil, jobPod(0), "", Owner{}, ""},
		{"a pod of a Job that asks", nil, asking(jobPod(0), "true"), "job.train", owner("Job", "train", "", 0), ""},
		{"a pod of a ReplicationController that asks", nil,
			asking(ownedPod("p", "v1", "ReplicationController", "rc", nil, nil), "true"),
			"replicationcontroller.rc", owner("ReplicationController", "rc", "", 0), ""},
		{"any other value is a mistake", nil, asking(jobPod(0), "yes"), "", Owner{}, `pod annotation berth.dev/gang: "yes" is not "true"`},
		{"a pod of a controller of an unknown kind cannot ask", nil,
			asking(ownedPod("p", "example.com/v1", "Job", "j", nil, nil), "true"), "",
			Owner{},
			"pod annotation berth.dev/gang: how many pods \"Job j\" has is not known; create a PodGroup, or use one of the " +
				"kinds LeaderWorkerSet, JobSet, " +
				"MPIJob, RayCluster, PyTorchJob, TFJob, XGBoostJob, PaddleJob, MXJob, JAXJob, Job, StatefulSet, ReplicaSet, " +
				"ReplicationController"},
		{"the label of a PodGroup comes first", everything(""),
			with(asking(jobPod(0), "true"), func(p *v1.Pod) { p.Labels[schedulingv1alpha1.PodGroupLabel] = "mine" }),
			"mine", Owner{}, ""},
		{"a native group comes before all", everything(""), with(asking(jobPod(0), "true"), func(p *v1.Pod) {
			p.Spec.SchedulingGroup = &v1.PodSchedulingGroup{PodGroupName: ptr.To("g")}
			p.Labels[schedulingv1alpha1.PodGroupLabel] = "mine"
		}), "native.g", owner(NativeGroup, "g", "", 0), ""},
		{"a group of Volcano by its other annotation", nil, annotated(jobPod(0), volcanoOtherName, "g"), "volcano.g",
			owner(VolcanoGroup, "g", "", 0), ""},
		{"the annotation that asks for a gang comes before it", nil, annotated(asking(jobPod(0), "true"), volcanoName, "g"),
			"job.train", owner("Job", "train", "", 0), ""},
		{"a name that no object can have", nil, annotated(jobPod(0), volcanoName, "A_B"), "", Owner{},
			`pod annotation scheduling.k8s.io/group-name: "A_B" is not the name of a Volcano group`},
		{"a group of KAI", nil, annotated(jobPod(0), kaiName, "g"), "kai.g", owner(KAIGroup, "g", "", 0), ""},
		{"a gang of Grove", nil, with(jobPod(0), func(p *v1.Pod) { p.Labels[grovePodGang] = "g-0" }), "grove.g-0",
			owner(GroveGang, "g-0", "", 0), ""},
		{"a group of plain pods of Kueue by an annotation, as since Kueue 0.18", nil,
			annotated(annotated(jobPod(0), kueueGroup, "g"), kueueCount, "3"),
			"kueue.g", Owner{}, ""},
		{"the label counts before the annotation", nil, annotated(annotated(with(jobPod(0),
			func(p *v1.Pod) { p.Labels[kueueGroup] = "g" }), kueueGroup, "other"), kueueCount, "3"), "kueue.g", Owner{}, ""},

		{"a minimum on the pods of a JobSet", nil, annotated(jobSetPod(0), kaiMinMember, "2"), "jobset.train",
			counted(owner("JobSet", "train", "", 2), kaiMinMember), ""},
		{"a LeaderWorkerSet never starts without its leader: its size counts", nil,
			annotated(leaderWorkerSetPod(3), volcanoMinMember, "2"), "leaderworkerset.train.3",
			owner("LeaderWorkerSet", "train", "3", 64), ""},
		{"the pods of a RayCluster differ: the object says the minimum", nil, annotated(rayPod(0), volcanoMinMember, "2"),
			"raycluster.train", owner("RayCluster", "train", "", 0), ""},
		{"the group of another scheduler comes before a minimum alone", nil,
			annotated(annotated(jobPod(0), volcanoMinMember, "4"), volcanoName, "g"), "volcano.g",
			owner(VolcanoGroup, "g", "", 0), ""},
		{"a minimum on a pod without a controller", nil,
			annotated(st.MakePod().Namespace("ns").Name("p").Obj(), volcanoMinMember, "2"), "", Owner{},
			"pod annotation scheduling.volcano.sh/group-min-member: the pod belongs to no controller; create a PodGroup " +
				"for pods without one"},

		{"one without its count", nil, with(jobPod(0), func(p *v1.Pod) { p.Labels[kueueGroup] = "g" }), "", Owner{}, ""},
		{"one with a count that cannot be read", nil,
			annotated(with(jobPod(0), func(p *v1.Pod) { p.Labels[kueueGroup] = "g" }), kueueCount, "all"), "", Owner{},
			`pod annotation kueue.x-k8s.io/pod-group-total-count: "all" is not a whole number from 1 to 100000`},

		{"a Job by policy", only("Job"), jobPod(0), "job.train", owner("Job", "train", "", 0), ""},
		{"a Job by a policy for its namespace and its profile", within("ns", "gang-scheduler"), jobPod(0), "job.train",
			owner("Job", "train", "", 0), ""},
		{"by one for its namespace and another profile", within("ns", "other"), jobPod(0), "", Owner{}, ""},
		{"by one for another namespace", within("other", "gang-scheduler"), jobPod(0), "", Owner{}, ""},
		{"a ReplicaSet has to ask", everything(""), replicaSetPod(0), "", Owner{}, ""},
		{"a pod without a controller is covered by no policy", everything(""), st.MakePod().Namespace("ns").Name("p").Obj(),
			"", Owner{}, ""},
		{"a JobSet as a whole", everything(PerJobSet), jobSetPod(3), "jobset.train", owner("JobSet", "train", "", 0), ""},
		{"a JobSet by replicated job", everything(PerReplicatedJob), jobSetPod(3), "jobset.train.workers",
			owner("JobSet", "train", "workers", 0), ""},
		{"a JobSet by replica", everything(PerReplica), jobSetPod(3), "job.train-workers-1",
			owner("Job", "train-workers-1", "", 0), ""},
		{"a JobSet's Jobs where the policy names Jobs alone", only("Job"), jobSetPod(3), "job.train-workers-1",
			owner("Job", "train-workers-1", "", 0), ""},
		{"a group without its size", everything(""),
			with(leaderWorkerSetPod(7), func(p *v1.Pod) { delete(p.Annotations, LeaderWorkerSetSizeKey) }), "", Owner{},
			"pod annotation leaderworkerset.sigs.k8s.io/size is missing: want a whole number from 1 to 100000"},
		{"the launcher of the MPI operator, which is a Job", everything(""), mpiLauncher(), "mpijob.train",
			owner("MPIJob", "train", "", 0), ""},
		{"a RayCluster", everything(""), rayPod(1), "raycluster.train", owner("RayCluster", "train", "", 0), ""},
		{"a label that cannot be a name", everything(""),
			with(jobSetPod(0), func(p *v1.Pod) { p.Labels[jobSetNameLabel] = "Train_1" }), "", Owner{},
			`pod label jobset.sigs.k8s.io/jobset-name: "Train_1" is not the name of a JobSet`},
		{"an owner that cannot have such a name", everything(""), ownedPod("p", "batch/v1", "Job", "A_B", nil, nil), "",
			Owner{},
			`pod owner reference: "A_B" is not the name of a Job`},
	} {
		got, err := tc.policy.GangOf(tc.pod)
		message := ""
		if err != nil {
			message = err.Error()
		}
		if got.ID.Name != tc.gang || message != tc.err {
			t.Errorf("%s: gang %q, error %q; want %q, %q", tc.name, got.ID.Name, message, tc.gang, tc.err)
		}
		if diff := cmp.Diff(tc.owner, got.Owner); diff != "" {
			t.Errorf("%s: owner (-want +got):\n%s", tc.name, diff)
		}
		if tc.owner.Minimum > 0 && got.Minimum != tc.owner.Minimum {
			t.Errorf("%s: minimum %d, want %d", tc.name, got.Minimum, tc.owner.Minimum)
		}
	}
}

func TestPodsOfOneControllerAreOfOneClass(t *testing.T) {
	t.Parallel()
	for name, pod := range map[string]func(int) *v1.Pod{
		"Job": jobPod, "StatefulSet": statefulSetPod, "ReplicaSet": replicaSetPod, "JobSet": jobSetPod,
		"LeaderWorkerSet": leaderWorkerSetPod,
		"PyTorchJob":      trainingPod("PyTorchJob", "pytorchjob-controller", "worker"),
		"TFJob":           trainingPod("TFJob", "tfjob-controller", "worker"),
		"MPIJob":          mpiWorker, "RayCluster": rayPod,
	} {
		classes := map[string]bool{}
		for i := range 64 {
			classes[Member(pod(i), Membership{}, nil, true).Class] = true
		}
		if len(classes) != 1 {
			t.Errorf("%s: 64 equal workers are of %d classes", name, len(classes))
		}
		other := pod(0)
		other.Labels["app"] = "something-else"
		if classes[Member(other, Membership{}, nil, true).Class] {
			t.Errorf("%s: a label of the user's does not make a class of its own", name)
		}
	}
}

func TestGangNamesAreNamesOfObjects(t *testing.T) {
	t.Parallel()
	label := rapid.StringMatching(`[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?`)
	rapid.Check(t, func(t *rapid.T) {
		names := map[string]Owner{}
		// One stem for all, so that names that differ in their ends alone occur.
		stem := strings.Join(rapid.SliceOfN(label, 1, 4).Draw(t, "stem"), ".")
		for range 8 {
			o := Owner{Kind: rapid.SampledFrom([]string{"Job", "JobSet"}).Draw(t, "kind"), Namespace: "ns", Name: stem + "." +
				label.Draw(t, "name")}
			if len(o.Name) > maxNameLength {
				o.Name = strings.TrimRight(o.Name[:maxNameLength], "-.")
			}
			name := o.Gang().Name
			if errs := validation.IsDNS1123Subdomain(name); len(errs) > 0 {
				t.Fatalf("%q: %v", name, errs)
			}
			if other, taken := names[name]; taken && other != o {
				t.Fatalf("%+v and %+v are both %q", o, other, name)
			}
			names[name] = o
		}
	})
}
