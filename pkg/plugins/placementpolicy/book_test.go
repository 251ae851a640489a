package placementpolicy

import (
	"strings"
	"sync/atomic"
	"testing"

	"github.com/google/go-cmp/cmp"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	kubeinformers "k8s.io/client-go/informers"
	corelisters "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/klog/v2"
	fwk "k8s.io/kube-scheduler/framework"
	"sigs.k8s.io/yaml"

	placementv1alpha1 "berth.dev/berth/pkg/apis/placement/v1alpha1"
	"berth.dev/berth/pkg/informers"
)

// waker is a scheduler's handle that remembers which pods it is to try.
type waker struct {
	fwk.Handle
	woken []string
}

func (w *waker) Activate(_ klog.Logger, pods map[string]*v1.Pod) {
	for _, pod := range pods {
		w.woken = append(w.woken, pod.Name)
	}
}

// The loop finds no view yet, the first cycle makes one, and a policy changes, all before the loop makes a view: that
// of the cycle is the one that pods were judged by.
func TestPodsOfTheFirstCycleWakeWhenRulesChange(t *testing.T) {
	t.Parallel()
	byNode, err := informers.NewByNode[atomic.Pointer[marked]](kubeinformers.NewSharedInformerFactory(nil, 0))
	if err != nil {
		t.Fatal(err)
	}
	pods, none := cache.NewIndexer(cache.MetaNamespaceKeyFunc,
		cache.Indexers{}), cache.NewIndexer(cache.MetaNamespaceKeyFunc, cache.Indexers{})
	for name, labels := range map[string]map[string]string{"concerned": {"tenant": "acme"}, "other": nil} {
		if err := pods.Add(&v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name),
			Labels: labels}}); err != nil {
			t.Fatal(err)
		}
	}
	handle := &waker{}
	b := &book{handle: handle, sources: sources{
		policies: cache.NewSharedIndexInformer(nil, &placementv1alpha1.PlacementPolicy{}, 0, nil), byNode: byNode,
		pods: corelisters.NewPodLister(pods), nodes: corelisters.NewNodeLister(none),
		namespaces: corelisters.NewNamespaceLister(none),
	}}
	b.status = newStatusWriter(b, nil, nil)
	const onlyPoolA = `compliance: {rules: [{name: a, pods: {selector: {matchLabels: {tenant: acme}}}, nodes: {selector: {matchLabels: {pool: a}}}}]}`
	for generation, spec := range []string{onlyPoolA, strings.Replace(onlyPoolA, "pool: a", "pool: b", 1)} {
		policy := &placementv1alpha1.PlacementPolicy{ObjectMeta: metav1.ObjectMeta{Name: "tenants",
			Generation: int64(generation)}}
		if err := yaml.Unmarshal([]byte(spec), &policy.Spec); err != nil {
			t.Fatal(err)
		}
		if err := b.policies.GetStore().Add(policy); err != nil {
			t.Fatal(err)
		}
		b.current() // that of the first spec
	}
	b.catchUp(t.Context(), nil, true, nil)
	if diff := cmp.Diff([]string{"concerned"}, handle.woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}
