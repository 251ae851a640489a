package plugins_test

import (
	"bytes"
	"context"
	"fmt"
	"testing"
	"time"

	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"

	"berth.dev/berth/test/harness/box"
)

// tenFleet has room for every gang of the attacks. Its nodes are named after the part.
const tenFleet = `shapes:
- {name: %s, count: 10, allocatable: {cpu: "64", memory: 256Gi, pods: "500"}}
`

// tenants are two namespaces of a part.
type tenants struct{ mallory, alice *box.Box }

func newTenants(t *testing.T, b *box.Box, part string) tenants {
	t.Helper()
	b = b.Part(t, part, fmt.Sprintf(tenFleet, part))
	return tenants{b.Tenant(t, part+"-mallory", nil), b.Tenant(t, part+"-alice", nil)}
}

// member creates a pod of a gang by labels, or of none without a gang.
func member(t *testing.T, b *box.Box, name, gang string, minimum int, changes ...func(*v1.Pod)) {
	t.Helper()
	p := pod(name, "gang-scheduler", asking(strs{"cpu": "10m"}),
		func(p *v1.Pod) { p.Spec.AutomountServiceAccountToken = ptr.To(false) })
	if gang != "" {
		ganged(gang, fmt.Sprint(minimum))(p)
	}
	for _, change := range changes {
		change(p)
	}
	b.Create(t, p)
}

// countPlans is how many plans the scheduler has made, for whatever gang. It fails while the scheduler is being started
// again.
func countPlans(ctx context.Context, b *box.Box) (int, error) {
	page, err := b.SchedulerPage(ctx, "/metrics", nil)
	if err != nil {
		return 0, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(bytes.NewReader(page))
	if err != nil {
		return 0, fmt.Errorf("reading the scheduler's metrics: %w", err)
	}
	plans := 0
	for _, m := range families["berth_gang_plan_duration_seconds"].GetMetric() {
		plans += int(m.GetHistogram().GetSampleCount())
	}
	return plans, nil
}

// testOneGang has a tenant create a gang of members that all differ, and edit them as fast as it can.
func testOneGang(t *testing.T, b *box.Box) {
	of := newTenants(t, b, "one-gang")
	plans := func(t *testing.T) int {
		t.Helper()
		n, err := countPlans(t.Context(), b)
		if err != nil {
			t.Fatal(err)
		}
		return n
	}
	const size = 300
	distinct := func(i int) func(*v1.Pod) {
		return func(pod *v1.Pod) {
			pod.Annotations["example.com/n"] = fmt.Sprint(i)
			if i == size-1 {
				// No node satisfies it, which only a scheduling cycle finds out.
				pod.Spec.Affinity = &v1.Affinity{
					PodAffinity: &v1.PodAffinity{RequiredDuringSchedulingIgnoredDuringExecution: []v1.PodAffinityTerm{{
						TopologyKey:   v1.LabelHostname,
						LabelSelector: &metav1.LabelSelector{MatchLabels: strs{"example.com/nobody": "here"}}}}}}
			}
		}
	}
	for i := range size {
		member(t, of.mallory, fmt.Sprintf("m-%d", i), "big", size, distinct(i))
	}
	member(t, of.alice, "first", "", 0)
	of.alice.Bound(t, "first", "")
	b.Await(t, "the first plans", func(ctx context.Context) (bool, error) {
		n, err := countPlans(ctx, b)
		return err == nil && n > 0, nil
	})

	t.Run("edits do not end the pause between two plans", func(t *testing.T) {
		before, began, edits := plans(t), time.Now(), 0
		for ; time.Since(began) < 10*time.Second; edits++ {
			patch := fmt.Appendf(nil, `{"metadata":{"annotations":{"example.com/edit":"%d"}}}`, edits)
			pods := of.mallory.Client.CoreV1().Pods(of.mallory.Namespace)
			if _, err := pods.Patch(t.Context(), fmt.Sprintf("m-%d", edits%size), types.MergePatchType, patch,
				metav1.PatchOptions{}); err != nil {
				t.Fatal(err)
			}
		}
		// Pauses of 1, 2, 4 and 8 seconds, and one plan more that began before.
		if made := plans(t) - before; made > 5 {
			t.Errorf("%d plans were made during %d edits in %s, want no more than 5", made, edits, time.Since(began))
		}
	})
	t.Run("another tenant's gang starts meanwhile", func(t *testing.T) {
		for _, name := range numbered("w", 4) {
			member(t, of.alice, name, "small", 4)
		}
		of.alice.BoundPods(t, "w-", 4)
	})
	t.Run("gangs with a minimum that never comes are not planned", func(t *testing.T) {
		before := plans(t)
		for g := range 20 {
			for i := range 3 {
				member(t, of.mallory, fmt.Sprintf("few-%d-%d", g, i), fmt.Sprintf("few-%d", g), 10_000+90_000*(g%2), distinct(i))
			}
		}
		member(t, of.alice, "second", "", 0)
		of.alice.Bound(t, "second", "")
		// The first gang may have had its turn meanwhile.
		if made := plans(t) - before; made >= 20 {
			t.Errorf("%d plans were made for 20 gangs that are not complete", made)
		}
	})
	t.Run("a large gang of distinct members starts", func(t *testing.T) {
		for i := range size {
			member(t, of.mallory, fmt.Sprintf("ok-%d", i), "fits", size, distinct(i-1))
		}
		of.mallory.BoundPods(t, "", size)
	})
	t.Run("a large gang of members with a claim each starts", func(t *testing.T) { testLargeClaims(t, of.mallory) })
}
