package advise

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	resourcev1 "k8s.io/api/resource/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"

	"berth.dev/berth/pkg/cost/price"
	"berth.dev/berth/pkg/cost/priceview"
	"berth.dev/berth/pkg/gpu/gpuview"
	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/podview"
)

// NewNode says what more nodes of a kind would let start.
type NewNode struct {
	// Kind is the instance type, or the model and number of the GPUs, or the size, and whether it is spot capacity.
	Kind string `json:"kind"`
	// Like is an existing node of that kind, and Nodes is their number.
	Like  string `json:"like"`
	Nodes int    `json:"nodes"`
	// Count is how many are added: 1 or, where one starts nothing, the fewest that start something.
	Count int `json:"count"`
	// PriceMicroDollarsPerHour is the price of each, 0 if it is unknown.
	PriceMicroDollarsPerHour int64 `json:"priceMicroDollarsPerHour"`
	// Starts are the pending pods that start, and Units their units.
	Starts []Placement `json:"starts"`
	Units  []Unit      `json:"units"`
	// evicts is a pod that the scheduler evicts only with the new nodes, empty if there is none.
	evicts string
}

// kind are nodes that are bought as the same product.
type kind struct {
	name  string
	nodes []*v1.Node
	gpus  int
	price price.MicroDollars
}

// kindOf names the kind of a node by its instance type, else by its GPUs and size.
func kindOf(node *v1.Node, gpus *gpuview.Node) string {
	if name := node.Labels[v1.LabelInstanceTypeStable]; name != "" {
		return name
	}
	size := podview.NodeSize(node)
	if gpus.GPUs() == 0 {
		return size
	}
	return fmt.Sprintf("%d × %s, %s", gpus.GPUs(), cmp.Or(gpus.Model(), "GPU"), size)
}

// kinds are the kinds of the existing nodes, those with the most GPUs first.
func (s *search) kinds() []*kind {
	byName := map[string]*kind{}
	for _, node := range s.nodes {
		if podview.Leaving(node) {
			continue
		}
		gpus, _ := s.keys.ReadGPUNode(node)
		name := kindOf(node, gpus)
		if s.configuration.CapacityRules("").TypeOf(node) == priceview.Spot {
			name += ", spot"
		}
		k := byName[name]
		if k == nil {
			k = &kind{name: name, gpus: gpus.GPUs()}
			byName[name] = k
		}
		// A new node is like the cheapest of its kind, which comes first.
		if perHour, known := s.priceOf(node); known && (k.price == 0 || perHour < k.price) {
			k.price = perHour
			k.nodes = slices.Insert(k.nodes, 0, node)
			continue
		}
		k.nodes = append(k.nodes, node)
	}
	kinds := slices.Collect(maps.Values(byName))
	slices.SortFunc(kinds, func(a, b *kind) int {
		return cmp.Or(cmp.Compare(b.gpus, a.gpus), cmp.Compare(len(b.nodes), len(a.nodes)), cmp.Compare(a.name, b.name))
	})
	return kinds
}

// newNodes adds nodes of each kind in turn.
func (s *search) newNodes() error {
	if len(s.waiting) == 0 {
		return nil
	}
	kinds := s.kinds()
	for i, k := range kinds {
		if i == s.Most {
			s.limit("%s of %d were added to see what starts", plural.Of(i, "kind")+" of node", len(kinds))
			return nil
		}
		found, err := s.fewest(k)
		if err != nil {
			return err
		}
		s.advice.NewNodes = append(s.advice.NewNodes, *found)
		if found.evicts != "" {
			s.advice.Notes = append(s.advice.Notes, fmt.Sprintf("with %s like %s, the scheduler evicts pod %s",
				plural.Of(found.Count, "more node"), found.Like, found.evicts))
		}
	}
	return nil
}

// mostNew is how many nodes of a kind are added at most.
const mostNew = 64

// fewest adds one node or, if that starts nothing, the smallest number that does: a gang can need several.
func (s *search) fewest(k *kind) (*NewNode, error) {
	one, err := s.addNodes(k, 1)
	if err != nil || len(one.Units) > 0 {
		return one, err
	}
	needed := 1 // a pod runs on one node
	for _, u := range s.waiting {
		if u.Untried == "" {
			needed = max(needed, min(u.Needs, mostNew))
		}
	}
	if needed == 1 {
		return one, nil
	}
	found, err := s.addNodes(k, needed)
	if err != nil || len(found.Units) == 0 {
		return one, err
	}
	for tooFew := 1; found.Count-tooFew > 1; {
		fewer, err := s.addNodes(k, (tooFew+found.Count)/2)
		switch {
		case err != nil:
			return nil, err
		case len(fewer.Units) == 0:
			tooFew = fewer.Count
		default:
			found = fewer
		}
	}
	return found, nil
}

func (s *search) addNodes(k *kind, count int) (*NewNode, error) {
	like := k.nodes[0]
	s.say("trying %s more like %s", plural.Of(count, "node"), like.Name)
	found := &NewNode{Kind: k.name, Like: like.Name, Nodes: len(k.nodes), Count: count,
		PriceMicroDollarsPerHour: int64(k.price)}
	objects := slices.Clone(s.Objects)
	for i := range count {
		objects = append(objects, s.another(like, fmt.Sprintf("new-%d-", i+1))...)
	}
	err := s.try(objects, func(w *world) error {
		w.rest(nil)
		for _, u := range s.waiting {
			if placed := w.placed(u); len(placed) >= u.Needs {
				unit := u.Unit
				if u.Kind == KindPod {
					unit.Name = placed[0].Name // of equal pods, the one that starts
				}
				found.Starts, found.Units = append(found.Starts, placed...), append(found.Units, unit)
			}
		}
		found.evicts = s.newlyLost(w)
		return nil
	})
	return found, err
}

// another is a new node like an existing one, with devices and the pods that belong to the node. Their names begin with
// the prefix.
func (s *search) another(like *v1.Node, prefix string) []runtime.Object {
	node := freshNode(like, prefix+like.Name)
	objects := []runtime.Object{node}
	for _, obj := range s.Objects {
		switch obj := obj.(type) {
		case *v1.Pod:
			if obj.Spec.NodeName != like.Name || !podview.BelongsToNode(obj) || podview.Finished(obj) {
				continue
			}
			pod := obj.DeepCopy()
			pod.Name, pod.UID, pod.ResourceVersion = prefix+obj.Name, types.UID(prefix)+obj.UID, ""
			pod.Spec.NodeName = node.Name
			objects = append(objects, pod)
		case *resourcev1.ResourceSlice:
			if obj.Spec.NodeName == nil || *obj.Spec.NodeName != like.Name {
				continue
			}
			slice := obj.DeepCopy()
			slice.Name, slice.UID, slice.ResourceVersion = prefix+obj.Name, types.UID(prefix)+obj.UID, ""
			slice.Spec.NodeName = &node.Name
			slice.Spec.Pool.Name = prefix + obj.Spec.Pool.Name
			slice.OwnerReferences = []metav1.OwnerReference{}
			objects = append(objects, slice)
		}
	}
	return objects
}

// freshNode is a new node with the hardware of an existing one: ready, schedulable and without pods.
func freshNode(like *v1.Node, name string) *v1.Node {
	node := like.DeepCopy()
	node.ObjectMeta = metav1.ObjectMeta{Name: name, Labels: node.Labels, Annotations: node.Annotations}
	if _, labelled := node.Labels[v1.LabelHostname]; labelled {
		node.Labels[v1.LabelHostname] = name
	}
	node.Spec.Unschedulable, node.Spec.ProviderID = false, ""
	node.Spec.Taints = slices.DeleteFunc(node.Spec.Taints, func(t v1.Taint) bool {
		switch t.Key {
		case v1.TaintNodeUnschedulable, v1.TaintNodeNotReady, v1.TaintNodeUnreachable, v1.TaintNodeOutOfService,
			v1.TaintNodeMemoryPressure, v1.TaintNodeDiskPressure, v1.TaintNodePIDPressure, v1.TaintNodeNetworkUnavailable:
			return true
		default:
			return podview.IsLeavingTaint(t.Key)
		}
	})
	node.Status.Conditions = []v1.NodeCondition{{Type: v1.NodeReady, Status: v1.ConditionTrue}}
	return node
}
