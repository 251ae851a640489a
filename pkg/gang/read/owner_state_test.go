package read

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// object reads an object of that kind named train; text holds all but its metadata, or the metadata as well.
func object(t *testing.T, kind, text string) *unstructured.Unstructured {
	t.Helper()
	data, err := yaml.YAMLToJSON([]byte(text))
	require.NoError(t, err)
	fields := map[string]any{}
	require.NoError(t, json.Unmarshal(data, &fields))
	fields["kind"] = kind
	if fields["apiVersion"] == nil {
		fields["apiVersion"] = "v1"
	}
	if data, err = json.Marshal(fields); err != nil {
		t.Fatal(err)
	}
	obj := &unstructured.Unstructured{}
	require.NoError(t, obj.UnmarshalJSON(data))
	obj.SetName("train")
	obj.SetUID("u")
	return obj
}

func TestGangOwnerStates(t *testing.T) {
	t.Parallel()
	one := func(minimum int) map[string]OwnerState {
		return map[string]OwnerState{"": {UID: "u", Minimum: minimum}}
	}
	never := func(minimum int, why string) map[string]OwnerState {
		return map[string]OwnerState{"": {UID: "u", Minimum: minimum, Why: why}}
	}
	roles := func(minimum int, label, roles string) map[string]OwnerState {
		return map[string]OwnerState{"": {UID: "u", Minimum: minimum,
			Says: map[string]string{wellknown.MinMembersByRoleKey: roles, wellknown.RoleLabelKey: label}}}
	}
	inGroups := func(labels, groups string) map[string]string {
		return map[string]string{wellknown.GroupLabelKey: labels, wellknown.GroupsKey: groups}
	}
	jobs := func(whole OwnerState, parts map[string]OwnerState) map[string]OwnerState {
		whole.UID = "u"
		all := map[string]OwnerState{"": whole}
		for name, part := range parts {
			part.UID = "u"
			all[name] = part
		}
		return all
	}
	for _, tc := range []struct {
		name, kind, object string
		want               map[string]OwnerState
	}{
		{"a Job of one pod", "Job", `spec: {template: {}}`, one(1)},
		{"a Job's minimum is its parallelism, and no more than it has completions", "Job", `spec: {parallelism: 4, completions: 3}`, one(3)},
		{"a Job with more completions than run at a time", "Job", `spec: {parallelism: 4, completions: 9}`, one(4)},
		{"a range of indexes", "Job", `{spec: {parallelism: 8, completions: 8}, status: {failedIndexes: "0-2,7"}}`, one(4)},
		{"a Job that ends its pods", "Job", `spec: {parallelism: 4, activeDeadlineSeconds: 3600}`, map[string]OwnerState{"": {UID: "u", Minimum: 4, Limit: time.Hour}}},
		{"a limit beyond all run times is none", "Job", `spec: {parallelism: 4, activeDeadlineSeconds: 99999999999}`, one(4)},
		{"a Job scaled to nothing", "Job", `spec: {parallelism: 0}`, one(1)},
		{"a Job of a JobSet that places its Jobs apart", "Job",
			`spec: {parallelism: 4, template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}}}`,
			map[string]OwnerState{"": {UID: "u", Minimum: 1, Says: inGroups("batch.kubernetes.io/job-name", `[{"name":"train","required":"rack","pods":1,"alone":true}]`)}}},
		{"the same by labels of nodes", "Job",
			`spec: {parallelism: 4, template: {metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack, alpha.jobset.sigs.k8s.io/node-selector: ""}}}}`, one(4)},
		{"a Job larger than any gang", "Job", `spec: {parallelism: 200000}`, never(100000, "Job train asks for 200000 pods; a gang has 100000 at most")},
		{"a number that is none", "Job", `spec: {parallelism: many}`, never(1, `Job train: spec.parallelism: "many" is not a whole number from 0 to 2147483647`)},
		{"a field that has no fields", "Job", `spec: 7`, never(1, `Job train: spec.parallelism: "7" is not an object`)},

		{"a Job that starts with fewer, by an annotation of KAI", "Job", `{metadata: {annotations: {kai.scheduler/batch-min-member: "2"}}, spec: {parallelism: 6}}`, one(2)},
		{"by one of Volcano", "Job", `{metadata: {annotations: {scheduling.volcano.sh/group-min-member: "4"}}, spec: {parallelism: 6, completions: 9}}`, one(4)},
		{"one whose indexes have failed", "Job", `{metadata: {annotations: {kai.scheduler/batch-min-member: "4"}}, spec: {parallelism: 4, completions: 4}, status: {failedIndexes: "1"}}`, one(3)},
		{"one that asks for no number", "Job", `{metadata: {annotations: {kai.scheduler/batch-min-member: all}}, spec: {parallelism: 4}}`,
			never(4, `Job train: metadata.annotations.kai.scheduler/batch-min-member: "all" is not a whole number from 1 to 100000`)},
		{"a StatefulSet that starts with fewer", "StatefulSet", `{metadata: {annotations: {scheduling.volcano.sh/group-min-member: "2"}}, spec: {replicas: 4, podManagementPolicy: Parallel}}`, one(2)},
		{"one in order that needs one pod to start", "StatefulSet", `{metadata: {annotations: {scheduling.volcano.sh/group-min-member: "1"}}, spec: {replicas: 4}}`, one(1)},
		{"a ReplicaSet that starts with fewer, as its Deployment says", "ReplicaSet", `{metadata: {annotations: {scheduling.volcano.sh/group-min-member: "2"}}, spec: {replicas: 4}}`, one(2)},

		{"a StatefulSet creates its pods in order by default", "StatefulSet", `spec: {replicas: 2}`,
			never(2, "StatefulSet train creates its pods one after the other (podManagementPolicy: OrderedReady): a gang of 2 "+
				"can never be complete; "+
				"set podManagementPolicy: Parallel")},
		{"a ReplicationController", "ReplicationController", `spec: {}`, one(1)},

		{"a LeaderWorkerSet", "LeaderWorkerSet", `spec: {replicas: 3, leaderWorkerTemplate: {size: 4}, startupPolicy: LeaderCreated}`, one(4)},
		{"whose workers wait for the leader", "LeaderWorkerSet", `spec: {leaderWorkerTemplate: {size: 4}, startupPolicy: LeaderReady}`,
			never(4, "LeaderWorkerSet train creates the workers of a group when its leader is ready (startupPolicy: "+
				"LeaderReady): a gang of 4 can never be "+
				"complete; set startupPolicy: LeaderCreated")},
		{"whose groups are leaders alone", "LeaderWorkerSet", `spec: {leaderWorkerTemplate: {size: 1}, startupPolicy: LeaderReady}`, one(1)},
		{"whose sub-groups are placed apart, with the leader in the first", "LeaderWorkerSet",
			`{metadata: {annotations: {leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: rack}}, spec: {leaderWorkerTemplate: {size: 5, subGroupPolicy: {subGroupSize: 2}}}}`,
			map[string]OwnerState{"": {UID: "u", Minimum: 5, Says: inGroups("leaderworkerset.sigs.k8s.io/name,leaderworkerset.sigs.k8s.io/subgroup-index", `[{"name":"train-0","required":"rack","pods":3,"alone":true},{"name":"train-1","required":"rack","pods":2,"alone":true}]`)}}},
		{"whose sub-groups are placed apart, and the leader anywhere", "LeaderWorkerSet",
			`{metadata: {annotations: {leaderworkerset.sigs.k8s.io/subgroup-exclusive-topology: rack}}, spec: {leaderWorkerTemplate: {size: 5, subGroupPolicy: {subGroupSize: 4, subGroupPolicyType: LeaderExcluded}}}}`,
			map[string]OwnerState{"": {UID: "u", Minimum: 5, Says: inGroups("leaderworkerset.sigs.k8s.io/name,leaderworkerset.sigs.k8s.io/subgroup-index", `[{"name":"train-0","required":"rack","pods":4,"alone":true}]`)}}},

		{"a JobSet in order with nothing to order", "JobSet", `spec: {startupPolicy: {startupPolicyOrder: InOrder}, replicatedJobs: [{name: a, replicas: 2, template: {}}]}`,
			jobs(OwnerState{Minimum: 2}, map[string]OwnerState{"a": {Minimum: 2}})},
		{"a JobSet in which one waits for another, as a TrainJob with initializers makes it", "JobSet", `
spec:
  replicatedJobs:
  - {name: initializer, template: {spec: {}}}
  - {name: node, template: {spec: {parallelism: 4, completions: 4}}, dependsOn: [{name: initializer, status: Complete}]}`,
			jobs(OwnerState{Minimum: 5,
				Why: "JobSet train creates replicated job node after others (dependsOn): a gang of 5 can never be complete; " +
					"remove dependsOn, or set jobSetPer: ReplicatedJob in gangOwners of the scheduler's configuration"},
				map[string]OwnerState{"initializer": {Minimum: 1}, "node": {Minimum: 4}})},
		{"a JobSet that places its Jobs apart", "JobSet", `
metadata: {annotations: {alpha.jobset.sigs.k8s.io/exclusive-topology: rack}}
spec: {replicatedJobs: [{name: d, template: {spec: {}}}, {name: w, replicas: 2, template: {spec: {parallelism: 2}}}]}`,
			jobs(OwnerState{Minimum: 3, Says: inGroups("jobset.sigs.k8s.io/replicatedjob-name,jobset.sigs.k8s.io/job-index", `[{"name":"d","copies":1,"pods":1},{"name":"w","copies":2,"required":"rack","pods":1,"alone":true}]`)},
				map[string]OwnerState{"d": {Minimum: 1}, "w": {Minimum: 2, Says: inGroups("jobset.sigs.k8s.io/replicatedjob-name,jobset.sigs.k8s.io/job-index", `[{"name":"w","copies":2,"required":"rack","pods":1,"alone":true}]`)}})},

		{"replicas are 1 unless given", "PyTorchJob", `spec: {pytorchReplicaSpecs: {Master: {}, Worker: {replicas: 2}}}`, one(3)},
		{"one that has a master does not start without it", "PyTorchJob",
			`spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}, pytorchReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 8}}}`,
			roles(2, "training.kubeflow.org/replica-type", "master=1")},
		{"nor one with parameter servers without these", "TFJob",
			`spec: {runPolicy: {schedulingPolicy: {minAvailable: 4}}, tfReplicaSpecs: {PS: {replicas: 2}, Chief: {replicas: 1}, Worker: {replicas: 4}, Evaluator: {}}}`,
			roles(4, "training.kubeflow.org/replica-type", "chief=1,ps=2")},
		{"one that says fewer than those starts with the chief", "TFJob",
			`spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}, tfReplicaSpecs: {PS: {replicas: 2}, Chief: {replicas: 1}, Worker: {replicas: 4}}}`,
			roles(2, "training.kubeflow.org/replica-type", "chief=1")},
		{"an MPIJob of the MPI operator that can start with fewer needs its launcher", "MPIJob",
			`{apiVersion: kubeflow.org/v2beta1, spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}, mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 4}}}}`,
			roles(2, "training.kubeflow.org/job-role", "launcher=1")},
		{"one of the training operator", "MPIJob",
			`{apiVersion: kubeflow.org/v1, spec: {runPolicy: {schedulingPolicy: {minAvailable: 2}}, mpiReplicaSpecs: {Launcher: {}, Worker: {replicas: 4}}}}`,
			roles(2, "training.kubeflow.org/replica-type", "launcher=1")},
		{"a job that says more than it has", "PyTorchJob", `spec: {runPolicy: {schedulingPolicy: {minAvailable: 9}}, pytorchReplicaSpecs: {Worker: {replicas: 8}}}`,
			never(9, "PyTorchJob train has 8 pods and asks for 9 (spec.runPolicy.schedulingPolicy.minAvailable): a gang of 9 "+
				"can never be complete; lower spec.runPolicy.schedulingPolicy.minAvailable")},
		{"an XGBoostJob", "XGBoostJob", `spec: {xgbReplicaSpecs: {Master: {replicas: 1}, Worker: {replicas: 2}}}`, one(3)},
		{"a PaddleJob", "PaddleJob", `spec: {paddleReplicaSpecs: {Worker: {replicas: 2}}}`, one(2)},
		{"an MXJob", "MXJob", `spec: {mxReplicaSpecs: {Scheduler: {replicas: 1}, Server: {replicas: 1}, Worker: {replicas: 1}}}`, one(3)},
		{"a JAXJob", "JAXJob", `spec: {jaxReplicaSpecs: {Worker: {replicas: 2}}}`, one(2)},
		{"an MPIJob has a launcher, too", "MPIJob", `spec: {mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}}`, one(3)},
		{"an MPIJob whose launcher waits for the workers", "MPIJob",
			`spec: {launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {replicas: 1}, Worker: {replicas: 2}}}`, one(2)},
		{"an MPIJob without workers", "MPIJob", `spec: {runLauncherAsWorker: true, launcherCreationPolicy: WaitForWorkersReady, mpiReplicaSpecs: {Launcher: {replicas: 1}}}`, one(1)},

		{"one that Ray scales starts with the least of each group", "RayCluster", `spec: {enableInTreeAutoscaling: true, workerGroupSpecs: [{groupName: cpu, replicas: 6, minReplicas: 1, maxReplicas: 9}, {groupName: gpu, replicas: 2, minReplicas: 2, numOfHosts: 2}, {groupName: later, replicas: 1}]}`,
			roles(6, "ray.io/group", "cpu=1,gpu=4,headgroup=1")},
		{"groups of one name count together", "RayCluster", `spec: {workerGroupSpecs: [{groupName: a, replicas: 2}, {groupName: a, replicas: 1}]}`, one(4)},
		{"and those that cannot be told from the head", "RayCluster", `spec: {workerGroupSpecs: [{groupName: headgroup, replicas: 2}]}`, one(3)},
		{"and those whose name no label can have", "RayCluster", `spec: {workerGroupSpecs: [{groupName: "a b", replicas: 2}]}`, one(3)},
		{"a group within its bounds", "RayCluster", `spec: {workerGroupSpecs: [{replicas: 9, minReplicas: 1, maxReplicas: 3}, {replicas: 0, minReplicas: 2, maxReplicas: 3}]}`, one(6)},
		{"a group that is suspended", "RayCluster", `spec: {workerGroupSpecs: [{replicas: 3, suspend: true}]}`, one(1)},
		{"a cluster that is suspended", "RayCluster", `spec: {suspend: true, workerGroupSpecs: [{replicas: 3}]}`, one(4)},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			kind, known := OwnerKindOf(tc.kind)
			if !known {
				t.Fatalf("kind %s is not known", tc.kind)
			}
			obj := object(t, tc.kind, tc.object)
			for part, s := range tc.want {
				s.APIVersion = obj.GetAPIVersion()
				tc.want[part] = s
			}
			if diff := cmp.Diff(tc.want, kind.States(obj)); diff != "" {
				t.Errorf("states (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.want, kind.States(kind.Keep(obj))); diff != "" && !misread(tc.want) {
				t.Errorf("states by what is kept (-want +got):\n%s", diff)
			}
		})
	}
}

// misread reports whether the object has a field of the wrong type, which no API server lets in and which is not kept.
func misread(states map[string]OwnerState) bool {
	return strings.Contains(states[""].Why, " is not ")
}

func TestPodsThatCarryTheMinimumOfTheirObject(t *testing.T) {
	t.Parallel()
	const inOrder = "creates its pods one after the other"
	for _, tc := range []struct {
		name  string
		owner Owner
		state OwnerState
		why   string
	}{
		{"as many as it has", Owner{Kind: "Job", Name: "j", Minimum: 6, MinimumKey: kaiMinMember},
			OwnerState{Minimum: 6}, ""},
		{"more than it has", Owner{Kind: "Job", Name: "j", Minimum: 7, MinimumKey: kaiMinMember}, OwnerState{Minimum: 6},
			"Job j has 6 pods and asks for 7 (kai.scheduler/batch-min-member): a gang of 7 can never be complete; " +
				"lower kai.scheduler/batch-min-member"},
		{"pods that are created in order", Owner{Kind: "StatefulSet", Minimum: 2, MinimumKey: volcanoMinMember},
			OwnerState{Minimum: 4, Why: inOrder}, inOrder},
		{"the first of them", Owner{Kind: "StatefulSet", Minimum: 1, MinimumKey: volcanoMinMember},
			OwnerState{Minimum: 4, Why: inOrder}, ""},
		{"a group of a LeaderWorkerSet of another size", Owner{Kind: leaderWorkerSet, Minimum: 8},
			OwnerState{Minimum: 4}, ""},
	} {
		if diff := cmp.Diff(OwnerState{Why: tc.why}, tc.state.LeavingMinimum(&tc.owner)); diff != "" {
			t.Errorf("%s: state (-want +got):\n%s", tc.name, diff)
		}
	}
}

func TestOutlivedPods(t *testing.T) {
	t.Parallel()
	created := time.Date(2026, 11, 22, 12, 0, 0, 0, time.UTC)
	state := OwnerState{UID: "u", Created: created, Attempt: 2}
	pod := func(kind, uid string, age time.Duration, attempt string) *v1.Pod {
		return &v1.Pod{ObjectMeta: metav1.ObjectMeta{
			CreationTimestamp: metav1.NewTime(created.Add(-age)),
			Labels:            map[string]string{restartAttemptLabel: attempt},
			OwnerReferences:   []metav1.OwnerReference{{Kind: kind, UID: types.UID(uid), Controller: ptr.To(true)}},
		}}
	}
	for _, tc := range []struct {
		name, kind string
		state      OwnerState
		pod        *v1.Pod
		want       bool
	}{
		{"a pod of an earlier attempt", "JobSet", state, pod("Job", "j", -time.Second, "1"), true},
		{"a pod of an attempt that the object does not say yet", "JobSet", state, pod("Job", "j", -time.Second, "3"), false},
		{"a pod of a Job that is as old as the object", "JobSet", state, pod("Job", "j", 0, "2"), false},
		{"a pod of a Job that is older than the object", "JobSet", state, pod("Job", "j", time.Second, "2"), true},
		{"a pod that the object has adopted", "StatefulSet", state, pod("StatefulSet", "u", time.Hour, ""), false},
		{"a pod of another object of that name", "Job", state, pod("Job", "j", -time.Second, ""), true},
		{"an older pod of a controller that adopts", "LeaderWorkerSet", state, pod("StatefulSet", "j", time.Hour, ""), false},
		{"an object that was not read", "Job", OwnerState{}, pod("Job", "j", time.Hour, ""), false},
	} {
		if got := tc.state.Outlived(tc.kind, tc.pod); got != tc.want {
			t.Errorf("%s: Outlived: %t, want %t", tc.name, got, tc.want)
		}
	}
}

// FuzzGangOwnerStates reads any object as each kind of controller and of groups.
func FuzzGangOwnerStates(f *testing.F) {
	for _, text := range []string{
		`{"spec": {"parallelism": 4, "completions": 3, "suspend": true}, "status": {"failedIndexes": "1,3-5"}}`,
		`{"spec": {"parallelism": 2147483647, "replicatedJobs": [{"name": "a", "replicas": 2147483647, "template": {"spec": {"parallelism": 2147483647}}}]}}`,
		`{"spec": {"replicas": -1, "workerGroupSpecs": [{"replicas": 2147483647, "numOfHosts": 2147483647}, 7, null]}}`,
		`{"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": 1.5}, "Master": null}, "runPolicy": {"schedulingPolicy": {"minAvailable": 1e99}}}}`,
		`{"spec": {"minMember": 4, "minTaskMember": {"a": -1}, "networkTopology": {}}}`,
		`{"spec": {"subGroups": [{"name": "a", "parent": "a"}], "minSubGroup": "x", "podgroups": {}}}`,
		`{"metadata": {"annotations": {"berth.dev/topology-required": "\n"}}, "spec": {"schedulingConstraints": {"topology": [{"key": "a,b"}]}}}`,
	} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		obj := &unstructured.Unstructured{Object: map[string]any{}}
		if json.Unmarshal([]byte(text), &obj.Object) != nil || obj.Object == nil {
			return
		}
		for _, kind := range append(OwnerKinds(), GroupKinds()...) {
			obj.SetAPIVersion(schema.GroupVersion{Group: kind.Group, Version: kind.Versions[0]}.String())
			states := kind.States(obj)
			if diff := cmp.Diff(states, kind.States(kind.Keep(obj))); diff != "" && kind.Object == "" && !misread(states) {
				t.Errorf("%s: states by what is kept (-all +kept):\n%s", kind.Kind, diff)
			}
			if _, whole := states[""]; !whole {
				t.Errorf("%s: nothing is said of the whole", kind.Kind)
			}
			for part, s := range states {
				if s.Minimum < 1 || s.Minimum > maxMinMember || strings.ContainsAny(s.Why, "\n\r") {
					t.Errorf("%s: minimum %d of %q (%s)", kind.Kind, s.Minimum, part, s.Why)
				}
				if (s.PodGroup(gang.ID{}) == nil) != (s.Says == nil) {
					t.Errorf("%s: %+v", kind.Kind, s)
				}
			}
		}
	})
}

func FuzzCountIndexes(f *testing.F) {
	for _, text := range []string{"", "1", "1,3-5,7", "0-2147483647,0-2147483647", "5-3", "-", "1-2-3", "a,2",
		"99999999999999999999"} {
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text string) {
		if n := countIndexes(text); n < 0 || n > math.MaxInt32 {
			t.Errorf("%q names %d indexes", text, n)
		}
	})
}
