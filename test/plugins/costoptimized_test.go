package plugins_test

import (
	"testing"
	"testing/synctest"

	appsv1 "k8s.io/api/apps/v1"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	frameworkruntime "k8s.io/kubernetes/pkg/scheduler/framework/runtime"
	st "k8s.io/kubernetes/pkg/scheduler/testing"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/plugins/costoptimized"
	"berth.dev/berth/test/harness/framework"
	"berth.dev/berth/test/harness/objects"
)

const (
	costProfile    = "cost-optimized-scheduler"
	karpenterLabel = "karpenter.sh/capacity-type"
	spotKey        = "berth.dev/spot"
)

// billed is a scheduler with CostOptimized alone.
type billed struct {
	*framework.Scheduler
	plugin *costoptimized.Plugin
}

// billSetup has args that tune may change.
func billSetup(tune func(*config.CostOptimizedArgs), all []runtime.Object, points ...string) framework.Setup {
	args := &config.CostOptimizedArgs{}
	args.SetDefaults()
	if tune != nil {
		tune(args)
	}
	return framework.Setup{
		Profile: framework.Alone(costProfile, costoptimized.Name, args, points...),
		Plugins: frameworkruntime.Registry{costoptimized.Name: costoptimized.New},
		Objects: all,
	}
}

// bill starts the plugin on these objects. It has counted all pods when bill returns.
func bill(tb testing.TB, tune func(*config.CostOptimizedArgs), all ...runtime.Object) *billed {
	tb.Helper()
	s := framework.Start(tb, billSetup(tune, all))
	synctest.Wait()
	return &billed{s, framework.Plugin[*costoptimized.Plugin](tb, s)}
}

// terms are the parts of what a pod costs, by node; of nodes whose price is not known there are none.
func (b *billed) terms(tb testing.TB, pod *v1.Pod) map[string]map[string]float64 {
	tb.Helper()
	parts, o := map[string]map[string]float64{}, b.Cycle(tb, pod)
	for _, info := range b.Infos(tb) {
		cost, err := b.plugin.Terms(tb.Context(), o.State, pod, info)
		if err != nil {
			tb.Fatal(err)
		}
		for _, term := range cost.Terms {
			if parts[info.Node().Name] == nil {
				parts[info.Node().Name] = map[string]float64{}
			}
			parts[info.Node().Name][term.Name] = term.Amount
		}
	}
	return parts
}

// priced makes a node with eight GPUs, 96 cores and 1 TiB at a price; without a price if it is empty.
func priced(name, price string, labels ...string) *v1.Node {
	return atPrice(objects.Node(name, "cpu", "96", "memory", "1Ti", "nvidia.com/gpu", "8"), price, labels...)
}

// smallPriced makes a node of an eighth of that size.
func smallPriced(name, price string) *v1.Node {
	return atPrice(objects.Node(name, "cpu", "12", "memory", "128Gi", "nvidia.com/gpu", "1"), price)
}

func atPrice(node *st.NodeWrapper, price string, labels ...string) *v1.Node {
	if price != "" {
		node.Annotation("berth.dev/price-per-hour", price)
	}
	return objects.Labelled(node, labels...)
}

// eighth makes a pod that asks for an eighth of such a node.
func eighth(name string) *st.PodWrapper {
	return objects.Pod(name, "cpu", "12", "memory", "128Gi", "nvidia.com/gpu", "1").SchedulerName(costProfile)
}

// ofDaemonSet makes the pod as the DaemonSet controller makes that of a node.
func ofDaemonSet(pod *st.PodWrapper, node string) *v1.Pod {
	return pod.OwnerReference("agent",
		appsv1.SchemeGroupVersion.WithKind("DaemonSet")).NodeAffinityIn(metav1.ObjectNameField, []string{node},
		st.NodeSelectorTypeMatchFields).Obj()
}

// event is the only one that there is within a minute.
func (b *billed) event(tb testing.TB) string {
	tb.Helper()
	pass(minute)
	if n := len(b.Recorder.Events); n != 1 {
		tb.Fatalf("%d events", n)
	}
	return <-b.Recorder.Events
}
