package replays

import (
	"math/rand/v2"
	"testing"
	"time"

	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/trace"
)

func TestArrivalsComeAtTheirRateUntilTheEnd(t *testing.T) {
	t.Parallel()
	const until = 10_000 * time.Minute
	last, n := time.Duration(0), 0
	for at := range Arrivals(rand.New(rand.NewPCG(1, 1)), float64(time.Minute), until) {
		if at < last || at >= until {
			t.Fatalf("an arrival at %s after one at %s, and the end is %s", at, last, until)
		}
		last = at
		n++
	}
	if n < 9_500 || n > 10_500 {
		t.Errorf("%d arrivals in 10,000 minutes, want about one a minute", n)
	}
}

func TestWaitIsFromTheArrivalToTheStart(t *testing.T) {
	t.Parallel()
	r := &replayed.Result{Starts: map[string]float64{"a": 90}}
	if wait, started := Wait(r, &trace.Job{Name: "a", Arrival: time.Minute}); !started || wait != 30 {
		t.Errorf("waited %g s, started %t; want 30 s", wait, started)
	}
	if _, started := Wait(r, &trace.Job{Name: "b"}); started {
		t.Error("a job that the result does not have has started")
	}
}

func TestSetWeight(t *testing.T) {
	t.Parallel()
	weightOf := func(weight int32) (now int32, enabled bool) {
		c, err := schedulerconfig.Parse("test", []byte(`apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
profiles: [{schedulerName: one, plugins: {multiPoint: {enabled: [{name: GPUAware, weight: 20}]}}}]
`))
		if err != nil {
			t.Fatal(err)
		}
		SetWeight(c, "GPUAware", weight)
		for _, p := range c.Component.Profiles[0].Plugins.MultiPoint.Enabled {
			if p.Name == "GPUAware" {
				return p.Weight, true
			}
		}
		return 0, false
	}
	if now, _ := weightOf(7); now != 7 {
		t.Errorf("the weight is %d, want 7", now)
	}
	if _, enabled := weightOf(0); enabled {
		t.Error("the plugin is enabled with weight 0")
	}
}
