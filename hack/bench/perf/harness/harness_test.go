// Package harness_test is kube-scheduler's own benchmark, scheduler_perf, with the plugins of this project registered.
// The command above builds it and runs it once for each measurement.
package harness_test

import (
	"flag"
	"fmt"
	"os"
	"testing"

	_ "k8s.io/component-base/logs/json/register"
	perf "k8s.io/kubernetes/test/integration/scheduler_perf"

	"berth.dev/berth/hack/bench/perf/installed"
	"berth.dev/berth/pkg/plugins"
)

var cases = flag.String("cases", "", "file of the cases to run, in the form of upstream's performance-config.yaml")

func init() {
	flag.BoolVar(&installed.Berth, "berth", false, "prepare the scheduler as berth-scheduler does")
}

func TestMain(m *testing.M) {
	// It reads the flags, which have to be registered before.
	if err := perf.InitTests(); err != nil {
		fmt.Fprintln(os.Stderr, "harness:", err)
		os.Exit(1)
	}
	os.Exit(m.Run())
}

// BenchmarkPerfScheduling has the name by which upstream's tools know the results.
func BenchmarkPerfScheduling(b *testing.B) {
	perf.RunBenchmarkPerfScheduling(b, *cases, "berth", plugins.Registry())
}
