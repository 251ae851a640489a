package candidates_test

import (
	"fmt"
	"testing"

	"k8s.io/component-base/metrics/legacyregistry"
)

func TestDbg(t *testing.T) {
	r := newRig(t, profileName, nodesOf(500))
	for i := range 20 {
		p := podOf(fmt.Sprint(i), 1000, 1000, i%3)
		res, err := r.choose(t, r.best, p)
		if err != nil {
			t.Log(err)
			continue
		}
		r.assume(t, p, res.SuggestedHost)
	}
	ms, _ := legacyregistry.DefaultGatherer.Gather()
	for _, m := range ms {
		if m.GetName() == "berth_candidates_cycles_total" {
			t.Log(m)
		}
	}
}
