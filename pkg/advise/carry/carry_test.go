package carry

import (
	"context"
	"errors"
	"strings"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	policyv1 "k8s.io/api/policy/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/utils/ptr"

	"berth.dev/berth/pkg/advise"
	"berth.dev/berth/pkg/wellknown"
)

var pods = v1.SchemeGroupVersion.WithResource("pods")

func node(name string) *v1.Node { return &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: name}} }

// pod is one of a ReplicaSet; pending without a node.
func pod(name, on string) *v1.Pod {
	owner := metav1.OwnerReference{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "rs-" + name,
		UID:        types.UID("rs-" + name),
		Controller: ptr.To(true)}
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: "default", UID: types.UID("pod-" + name),
			OwnerReferences: []metav1.OwnerReference{owner}},
		Spec: v1.PodSpec{NodeName: on},
	}
}

// behavior is what a cluster does with evictions: where the replacement goes, by the name of the pod; nowhere without
// an entry.
type behavior struct {
	refuses map[string]bool
	to      map[string]string
	// starts binds p once the pod has been evicted.
	starts string
	// fails is the number of moves that are left when they do not work any more.
	fails int
}

func clusterThat(t *testing.T, b behavior, objects ...runtime.Object) *fake.Clientset {
	t.Helper()
	client := fake.NewClientset(objects...)
	store := client.Tracker()
	client.PrependReactor("create", "pods", func(action clienttesting.Action) (bool, runtime.Object, error) {
		if action.GetSubresource() != "eviction" {
			return false, nil, nil
		}
		name := action.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name
		if b.refuses[name] {
			return true, nil, apierrors.NewTooManyRequests("the budget is used up", 1)
		}
		obj, err := store.Get(pods, "default", name)
		if err != nil {
			return true, nil, err
		}
		again := obj.(*v1.Pod).DeepCopy()
		again.Name, again.UID, again.Spec.NodeName = name+"-again", again.UID+"-again", b.to[name]
		if err := store.Delete(pods, "default", name); err != nil {
			return true, nil, err
		}
		if b.starts == name {
			waits, err := store.Get(pods, "default", "p")
			if err != nil {
				return true, nil, err
			}
			started := waits.(*v1.Pod).DeepCopy()
			started.Spec.NodeName = "a"
			if err := store.Update(pods, started, "default"); err != nil {
				return true, nil, err
			}
		}
		return true, nil, store.Add(again)
	})
	return client
}

func TestAPlanIsCarriedOutForAsLongAsTheClusterIsAsPlanned(t *testing.T) {
	t.Parallel()
	plan := &advise.Plan{For: advise.Unit{Kind: advise.KindPod, Namespace: "default", Name: "p"}, Cordon: []string{"a"},
		Starts: []advise.Placement{{Namespace: "default", Name: "p", Node: "a"}}}
	for _, name := range []string{"x", "y"} {
		plan.Moves = append(plan.Moves, advise.Move{Unit: advise.Unit{Kind: advise.KindPod, Namespace: "default", Name: name},
			Pods: []advise.MovedPod{{Name: name, UID: "pod-" + name, From: "a", To: "b"}}})
	}
	toB := map[string]string{"x": "b", "y": "b"}
	for _, tt := range []struct {
		name    string
		cluster behavior
		change  func(*v1.Pod)
		node    func(*v1.Node)
		evicted string
		want    string // part of the error
	}{
		{"all goes well", behavior{to: toB, starts: "y"}, nil, nil, "x y", ""},
		{"what waits starts before the last move", behavior{to: toB, starts: "x"}, nil, nil, "x", ""},
		{"what waits never starts", behavior{to: toB}, nil, nil, "x y", "what waits has not started"},
		{"a budget refuses the second", behavior{to: toB, refuses: map[string]bool{"y": true}}, nil, nil, "x y",
			"a PodDisruptionBudget does not allow it now"},
		{"a replacement stays pending", behavior{to: map[string]string{"y": "b"}}, nil, nil, "x",
			"the replacements of pod default/x have not all been given a node"},
		{"a replacement takes the place that is made", behavior{to: map[string]string{"x": "a"}}, nil, nil, "x",
			"went to a, which the plan has for pod default/p"},
		{"the room of the second is taken", behavior{to: toB, fails: 1}, nil, nil, "x", "the plan does not hold any more"},
		{"the room is taken before the first", behavior{to: toB, fails: 2}, nil, nil, "", "the plan does not hold any more"},
		{"a pod is another one of the same name", behavior{to: toB}, func(p *v1.Pod) { p.UID = "other" }, nil, "",
			"pod default/x has gone"},
		{"a pod is on another node", behavior{to: toB}, func(p *v1.Pod) { p.Spec.NodeName = "c" }, nil, "",
			"is on c and not on a"},
		{"a pod has lost its controller", behavior{to: toB}, func(p *v1.Pod) { p.OwnerReferences = nil }, nil, "",
			"has no controller"},
		{"a pod is ending", behavior{to: toB}, func(p *v1.Pod) {
			p.DeletionTimestamp = &metav1.Time{Time: time.Unix(1_800_000_000, 0)}
			p.Finalizers = []string{"x/y"}
		}, nil, "", "already ending"},
		{"the node was cordoned by another user", behavior{to: toB}, nil, func(n *v1.Node) { n.Spec.Unschedulable = true },
			"", "cordoned by another user"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			x, n := pod("x", "a"), node("a")
			if tt.change != nil {
				tt.change(x)
			}
			if tt.node != nil {
				tt.node(n)
			}
			client := clusterThat(t, tt.cluster, n, node("b"), x, pod("y", "a"), pod("p", ""))
			holds := func(_ context.Context, rest *advise.Plan) error {
				if len(rest.Moves) == tt.cluster.fails {
					return errors.New("the plan does not hold any more")
				}
				return nil
			}
			carrier := &Carrier{Client: client, Within: time.Second, Poll: time.Millisecond, Holds: holds, Say: func(string) {}}
			err := carrier.Carry(t.Context(), plan)
			if tt.want == "" && err != nil || tt.want != "" && (err == nil || !strings.Contains(err.Error(), tt.want)) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
			var evicted []string
			for _, a := range client.Actions() {
				if a.GetSubresource() == "eviction" {
					evicted = append(evicted, a.(clienttesting.CreateAction).GetObject().(*policyv1.Eviction).Name)
				}
			}
			if got := strings.Join(evicted, " "); got != tt.evicted {
				t.Errorf("evicted %q, want %q", got, tt.evicted)
			}
			after, err := client.CoreV1().Nodes().Get(context.Background(), "a", metav1.GetOptions{})
			if err != nil {
				t.Fatal(err)
			}
			if closed := tt.node != nil; after.Spec.Unschedulable != closed ||
				after.Annotations[wellknown.CordonedForKey] != "" {
				t.Errorf("node a is left with unschedulable %t and annotations %v", after.Spec.Unschedulable, after.Annotations)
			}
		})
	}
}

func TestAPlanThatIsInterruptedLeavesNoNodeClosed(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	plan := &advise.Plan{Cordon: []string{"a"},
		Moves: []advise.Move{{Unit: advise.Unit{Kind: advise.KindPod, Namespace: "default", Name: "x"},
			Pods: []advise.MovedPod{{Name: "x", UID: "pod-x", From: "a", To: "b"}}}}}
	client := clusterThat(t, behavior{}, node("a"), pod("x", "a"))
	carrier := &Carrier{Client: client, Within: time.Minute, Poll: time.Millisecond,
		Holds: func(context.Context, *advise.Plan) error { return nil }, Say: func(text string) {
			if strings.HasPrefix(text, "evicting") {
				cancel()
			}
		}}
	if err := carrier.Carry(ctx, plan); err == nil {
		t.Error("no error")
	}
	after, err := client.CoreV1().Nodes().Get(t.Context(), "a", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if after.Spec.Unschedulable {
		t.Error("node a is still cordoned")
	}
}
