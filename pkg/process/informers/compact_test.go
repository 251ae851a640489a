package informers

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"unsafe"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	kubeinformers "k8s.io/client-go/informers"
	"k8s.io/client-go/kubernetes/fake"
	"k8s.io/client-go/tools/cache"

	"berth.dev/berth/test/harness/require"
)

// decoded is an object as it comes from the API server, with memory of its own for all that it has.
func decoded[T interface {
	runtime.Object
	Unmarshal([]byte) error
	Marshal() ([]byte, error)
}](t *testing.T, into, object T) T {
	t.Helper()
	data, err := object.Marshal()
	require.NoError(t, err)
	require.NoError(t, into.Unmarshal(data))
	return into
}

func list(cpu, gpus string) v1.ResourceList {
	return v1.ResourceList{v1.ResourceCPU: resource.MustParse(cpu), "nvidia.com/gpu": resource.MustParse(gpus)}
}

func memberPod(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "team-a", Name: name, Labels: map[string]string{"app": "train"},
			Annotations:     map[string]string{"berth.dev/run-time": "3h", "only": name},
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "batch/v1", Kind: "Job", Name: "train", UID: "job"}},
		},
		Spec: v1.PodSpec{
			NodeName: "node-1", SchedulerName: "berth-scheduler", NodeSelector: map[string]string{"pool": "gpu"},
			Tolerations: []v1.Toleration{{Key: "nvidia.com/gpu", Operator: v1.TolerationOpExists}},
			Resources:   &v1.ResourceRequirements{Requests: list("16", "1")},
			Overhead:    list("1", "0"),
			Containers: []v1.Container{{Name: "main", Image: "registry/train", Command: []string{"python"},
				Resources:    v1.ResourceRequirements{Requests: list("16", "1"), Limits: list("32", "1")},
				Env:          []v1.EnvVar{{Name: "NCCL_DEBUG", Value: "INFO"}},
				VolumeMounts: []v1.VolumeMount{{Name: "data", MountPath: "/data"}}}},
		},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, HostIP: "10.0.0.1", HostIPs: []v1.HostIP{{IP: "10.0.0.1"}},
			Conditions: []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "Ready", Message: name}},
			ContainerStatuses: []v1.ContainerStatus{{Name: "main", Image: "registry/train", AllocatedResources: list("16", "1"),
				Resources: &v1.ResourceRequirements{Requests: list("16", "1"), Limits: list("32", "1")}}},
		},
	}
}

func gpuNode(name string) *v1.Node {
	return &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{v1.LabelHostname: name, "pool": "gpu"}},
		Spec:       v1.NodeSpec{Taints: []v1.Taint{{Key: "nvidia.com/gpu", Effect: v1.TaintEffectNoSchedule}}},
		Status: v1.NodeStatus{
			Capacity: list("96", "8"), Allocatable: list("95", "8"),
			Conditions: []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue, Reason: "KubeletReady"}},
			Addresses:  []v1.NodeAddress{{Type: v1.NodeHostName, Address: name}},
			NodeInfo:   v1.NodeSystemInfo{KernelVersion: "6.8.0", OSImage: "Linux", KubeletVersion: "v1.37.2"},
			Images:     []v1.ContainerImage{{Names: []string{"registry/train@sha256:1"}, SizeBytes: 1}},
		},
	}
}

// texts and maps are found by their addresses.
func textAt(s string) *byte           { return unsafe.StringData(s) }
func mapAt(m any) uintptr             { return reflect.ValueOf(m).Pointer() }
func keyAt(m map[string]string) *byte { return textAt(anyKey(m)) }

func anyKey(m map[string]string) string {
	for k := range m {
		if k != v1.LabelHostname && k != "only" {
			return k
		}
	}
	return ""
}

func TestPodsOfOneJobShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	compact := compacting((*sharing).pod)
	get := func(name string) *v1.Pod {
		pod := decoded(t, &v1.Pod{}, memberPod(name))
		want := pod.DeepCopy()
		pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		got, err := compact(pod)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the pod has changed (-want +got):\n%s", diff)
		}
		return got.(*v1.Pod)
	}
	a, b := get("a"), get("b")
	for what, of := range map[string]func(*v1.Pod) any{
		"labels":              func(p *v1.Pod) any { return mapAt(p.Labels) },
		"the node selector":   func(p *v1.Pod) any { return mapAt(p.Spec.NodeSelector) },
		"requests":            func(p *v1.Pod) any { return mapAt(p.Spec.Containers[0].Resources.Requests) },
		"limits":              func(p *v1.Pod) any { return mapAt(p.Spec.Containers[0].Resources.Limits) },
		"requests of pods":    func(p *v1.Pod) any { return mapAt(p.Spec.Resources.Requests) },
		"overhead":            func(p *v1.Pod) any { return mapAt(p.Spec.Overhead) },
		"what is allocated":   func(p *v1.Pod) any { return mapAt(p.Status.ContainerStatuses[0].AllocatedResources) },
		"the namespace":       func(p *v1.Pod) any { return textAt(p.Namespace) },
		"the node":            func(p *v1.Pod) any { return textAt(p.Spec.NodeName) },
		"the owner":           func(p *v1.Pod) any { return textAt(string(p.OwnerReferences[0].UID)) },
		"keys of annotations": func(p *v1.Pod) any { return keyAt(p.Annotations) },
		"the image":           func(p *v1.Pod) any { return textAt(p.Spec.Containers[0].Image) },
		"variables":           func(p *v1.Pod) any { return textAt(p.Spec.Containers[0].Env[0].Value) },
		"tolerations":         func(p *v1.Pod) any { return textAt(p.Spec.Tolerations[0].Key) },
		"reasons":             func(p *v1.Pod) any { return textAt(p.Status.Conditions[0].Reason) },
	} {
		if of(a) != of(b) {
			t.Errorf("the pods do not share %s", what)
		}
	}
	if r := a.Spec.Containers[0].Resources; mapAt(r.Requests) == mapAt(r.Limits) {
		t.Error("requests and limits are one list")
	}
}

func TestNodesOfOneKindShareWhatIsEqual(t *testing.T) {
	t.Parallel()
	compact := compacting((*sharing).node)
	get := func(name string) *v1.Node {
		node := decoded(t, &v1.Node{}, gpuNode(name))
		want := node.DeepCopy()
		node.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
		got, err := compact(node)
		require.NoError(t, err)
		if diff := cmp.Diff(want, got); diff != "" {
			t.Fatalf("the node has changed (-want +got):\n%s", diff)
		}
		return got.(*v1.Node)
	}
	a, b := get("a"), get("b")
	for what, of := range map[string]func(*v1.Node) any{
		"allocatable":    func(n *v1.Node) any { return mapAt(n.Status.Allocatable) },
		"capacity":       func(n *v1.Node) any { return mapAt(n.Status.Capacity) },
		"keys of labels": func(n *v1.Node) any { return keyAt(n.Labels) },
		"taints":         func(n *v1.Node) any { return textAt(n.Spec.Taints[0].Key) },
		"images":         func(n *v1.Node) any { return textAt(n.Status.Images[0].Names[0]) },
		"versions":       func(n *v1.Node) any { return textAt(n.Status.NodeInfo.KubeletVersion) },
	} {
		if of(a) != of(b) {
			t.Errorf("the nodes do not share %s", what)
		}
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	t.Parallel()
	s := newSharing()
	for i := range 5 * mostRecent {
		s.text(fmt.Sprint("text ", i))
		s.text("asked for again and again")
	}
	if n := len(s.texts); n > mostRecent {
		t.Errorf("%d texts are remembered, want at most %d", n, mostRecent)
	}
	if _, ok := s.texts["asked for again and again"]; !ok {
		t.Error("a text that is in use was forgotten")
	}
	large := map[string]string{}
	for i := range mostEntries + 1 {
		large[fmt.Sprint("label ", i)] = ""
	}
	s.shareLabels(&large)
	if n := len(s.labels); n > 0 {
		t.Error("a map with more entries than are remembered is remembered")
	}
	long := strings.Repeat("x", longestText+1)
	s.text(long)
	if _, ok := s.texts[long]; ok {
		t.Error("a long text is remembered")
	}
}

func TestFactoriesAreCompacted(t *testing.T) {
	t.Parallel()
	pod := memberPod("a")
	pod.ManagedFields = []metav1.ManagedFieldsEntry{{Manager: "kubelet"}}
	node := gpuNode("a")
	node.ManagedFields = pod.ManagedFields
	factory := kubeinformers.NewSharedInformerFactory(fake.NewClientset(pod, node), 0)
	require.NoError(t, Compact(factory))
	if err := Compact(factory); err != nil {
		t.Fatalf("the second call: %v", err)
	}
	factory.Start(t.Context().Done())
	factory.WaitForCacheSync(t.Context().Done())
	for key, store := range map[string]cache.Store{
		"team-a/a": factory.Core().V1().Pods().Informer().GetStore(), "a": factory.Core().V1().Nodes().Informer().GetStore(),
	} {
		object, known, err := store.GetByKey(key)
		if err != nil || !known || object.(metav1.Object).GetManagedFields() != nil {
			t.Errorf("%s is %v, known %v, error %v; want it known without managed fields", key, object, known, err)
		}
	}
}
