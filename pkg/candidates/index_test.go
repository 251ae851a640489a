package candidates

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework"
	"k8s.io/kubernetes/pkg/scheduler/framework/plugins/noderesources"
)

// byLabel is a ranker that reads the label kind, which PreScore tells apart, and the label shade, which it does not.
type byLabel struct {
	Ranker
	season *string
}

func (r byLabel) Basis() any { return *r.season }

func (r byLabel) Class(key Key, info fwk.NodeInfo) (Key, any) {
	labels := info.Node().Labels
	key.Fixed, key.All = append(key.Fixed, labels["kind"]+*r.season...), append(key.All, labels["shade"]...)
	return key, *r.season + labels["kind"] + labels["shade"]
}

func (byLabel) Judge(context.Context, fwk.CycleState, *v1.Pod) Judge { return nil }

// fleet is a list of nodes that changes at random.
type fleet struct {
	random *rand.Rand
	infos  []fwk.NodeInfo
	made   int
}

func (f *fleet) node(name string) *v1.Node {
	node := &v1.Node{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"kind": fmt.Sprint(f.random.IntN(3)),
			"shade": fmt.Sprint(f.random.IntN(2))}},
		Status: v1.NodeStatus{Allocatable: v1.ResourceList{
			v1.ResourceCPU: resource.MustParse("8"), v1.ResourceMemory: resource.MustParse("16Gi"),
			v1.ResourcePods: resource.MustParse("100"),
		}},
	}
	if f.random.IntN(4) == 0 {
		node.Spec.Taints = []v1.Taint{{Key: "dedicated", Effect: v1.TaintEffectNoSchedule}}
	}
	return node
}

// change does one thing to the fleet.
func (f *fleet) change(t *testing.T) {
	t.Helper()
	f.made++
	i := 0
	if len(f.infos) > 0 {
		i = f.random.IntN(len(f.infos))
	}
	switch action := f.random.IntN(10); {
	case len(f.infos) < 5 || action == 0:
		info := framework.NewNodeInfo()
		info.SetNode(f.node(fmt.Sprint(f.made)))
		info.ImageStates = map[string]*fwk.ImageStateSummary{fmt.Sprintf("image-%d", f.made%3): {Size: 1, NumNodes: 1}}
		f.infos = slices.Insert(f.infos, i, fwk.NodeInfo(info))
	case action == 1:
		f.infos = slices.Delete(f.infos, i, i+1)
	case action == 2:
		j := f.random.IntN(len(f.infos))
		f.infos[i], f.infos[j] = f.infos[j], f.infos[i]
	case action == 3:
		f.infos[i].(*framework.NodeInfo).SetNode(f.node(f.infos[i].Node().Name))
	case action < 6 && len(f.infos[i].GetPods()) > 0:
		if err := f.infos[i].(*framework.NodeInfo).RemovePod(klog.Logger{}, f.infos[i].GetPods()[0].GetPod()); err != nil {
			t.Fatal(err)
		}
	default:
		f.infos[i].(*framework.NodeInfo).AddPod(&v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint(f.made), UID: types.UID(fmt.Sprint(f.made))},
			Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: v1.ResourceList{
				v1.ResourceCPU: *resource.NewQuantity(int64(1+f.random.IntN(3)), resource.DecimalSI),
			}}}}},
		})
	}
}

// contents are the nodes by class, with what the class is known to be.
func (x *index) contents(t *testing.T) map[string][]string {
	t.Helper()
	byClass := map[string][]string{}
	users := make([][]int32, len(x.parts))
	for part := range x.parts {
		users[part] = make([]int32, len(x.parts[part].keys))
	}
	for key, number := range x.byKey {
		c := &x.classes[number]
		if len(c.members) == 0 || c.key != key {
			t.Errorf("class %d is kept under another key or has no members", number)
		}
		name := fmt.Sprint(x.parts[taintPart].keys[c.parts[taintPart]], x.parts[firstRanker].shown[c.parts[firstRanker]],
			c.free)
		for part, variety := range c.parts {
			users[part][variety]++
		}
		for place, at := range c.members {
			s := &x.slots[at]
			if s.class != number || s.at != int32(place) {
				t.Errorf("slot %d is not at its place in class %d", at, number)
			}
			byClass[name] = append(byClass[name], s.info.Node().Name)
		}
		slices.Sort(byClass[name])
	}
	for part := range x.parts {
		if !slices.Equal(users[part], x.parts[part].users) {
			t.Errorf("users of part %d: counted %v, kept %v", part, users[part], x.parts[part].users)
		}
	}
	return byClass
}

func TestAnIndexThatFollowsChangesIsTheIndexMadeAfresh(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		f := &fleet{random: rand.New(rand.NewPCG(seed, 1))}
		season := "spring"
		followed := newIndex([]Ranker{byLabel{season: &season}})
		for step := range 150 {
			if step == 100 {
				season = "autumn"
			}
			for range f.random.IntN(4) {
				f.change(t)
			}
			followed.update(f.infos)
			fresh := newIndex([]Ranker{byLabel{season: &season}})
			fresh.update(f.infos)
			if diff := cmp.Diff(fresh.contents(t), followed.contents(t)); diff != "" {
				t.Fatalf("seed %d, step %d: nodes by class (-fresh +followed):\n%s", seed, step, diff)
			}
			for at := range followed.slots {
				for i := range 3 {
					name := fmt.Sprintf("image-%d", i)
					info := followed.slots[at].info
					want := info != nil && info.GetImageStates()[name] != nil
					sets := followed.images.find([]string{name})
					if got := countImages(sets, int32(at)) == 1; got != want {
						t.Fatalf("seed %d, step %d: slot %d has %s: %t, want %t", seed, step, at, name, got, want)
					}
				}
			}
		}
	}
}

func TestAmountsThatAreNearlyEqualMakeOneClass(t *testing.T) {
	t.Parallel()
	f := &fleet{random: rand.New(rand.NewPCG(1, 1))}
	memory := func(bytes int64) fwk.NodeInfo {
		node := f.node("n")
		node.Labels, node.Spec.Taints = nil, nil
		node.Status.Allocatable[v1.ResourceMemory] = *resource.NewQuantity(bytes, resource.BinarySI)
		node.Status.Allocatable[v1.ResourceEphemeralStorage] = node.Status.Allocatable[v1.ResourceMemory]
		info := framework.NewNodeInfo()
		info.SetNode(node)
		return info
	}
	x := newIndex(nil)
	x.update([]fwk.NodeInfo{memory(540_556_030_000), memory(540_556_034_096), memory(540_400_000_000),
		memory(270_000_000_000)})
	if len(x.byKey) != 2 {
		t.Errorf("%d classes, want 2: nodes of nearly the same memory and disk are alike", len(x.byKey))
	}
	for _, number := range x.byKey {
		c := &x.classes[number]
		for _, at := range c.members {
			if has := x.slots[at].info.GetAllocatable().GetMemory(); c.free.below(amounts{memory: has}) ||
				c.free.below(amounts{storage: has}) {
				t.Errorf("the class is taken to have %+v free at most, a member has %d bytes of memory and of disk", c.free, has)
			}
		}
	}
}

// The words are those of Kubernetes: where they change, nodes that are full are tried one by one again.
func TestTheStockFilterSaysWhichResourceIsCounted(t *testing.T) {
	t.Parallel()
	requests := v1.ResourceList{}
	for _, name := range []v1.ResourceName{v1.ResourceCPU, v1.ResourceMemory, v1.ResourceEphemeralStorage,
		"nvidia.com/gpu", "hugepages-2Mi"} {
		requests[name] = resource.MustParse("1")
	}
	pod := &v1.Pod{Spec: v1.PodSpec{Containers: []v1.Container{{Resources: v1.ResourceRequirements{Requests: requests}}}}}
	info := framework.NewNodeInfo()
	info.SetNode(&v1.Node{})
	got := map[v1.ResourceName]bool{}
	for _, short := range noderesources.Fits(pod, info, nil, noderesources.ResourceRequestsOptions{}) {
		got[short.ResourceName] = ofCounted(short.Reason)
	}
	want := map[v1.ResourceName]bool{v1.ResourceCPU: false, v1.ResourceMemory: false, v1.ResourceEphemeralStorage: false,
		"nvidia.com/gpu": true, "hugepages-2Mi": true, v1.ResourcePods: true}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("whether a reason is of what is counted (-want +got):\n%s", diff)
	}
}

func TestClassesAreTriedFromTheBestOn(t *testing.T) {
	t.Parallel()
	h := newHeap([]ranked{
		{class: 1, rank: 5, exact: true}, {class: 2, rank: 9, exact: true}, {class: 3, rank: 9, exact: true, images: 1},
		{class: 4, rank: 9}, {class: 5, rank: 7, exact: true}, {class: 6, rank: 7, exact: true},
	})
	var got []int32
	for ; len(h) > 0; h = h.pop() {
		got = append(got, h[0].class)
	}
	if diff := cmp.Diff([]int32{4, 3, 2, 5, 6, 1}, got); diff != "" {
		t.Errorf("order of classes (-want +got):\n%s", diff)
	}
}
