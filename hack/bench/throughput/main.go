// Command throughput measures what a scheduler costs per pod, and how many pods it places in a second, as clusters
// grow: the shipped profiles, these without one of their plugins, and the stock scheduler, on the same pods and nodes.
// Every run has a local control plane and a scheduler process of its own. docs/internals/throughput.md describes the
// method.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"regexp"
	"strconv"
	"strings"
	"time"

	"berth.dev/berth/hack/bench/live"
	"berth.dev/berth/hack/bench/rig"
)

var (
	sizes = rig.List("nodes", []int{500, 1000, 5000, 10000}, "sizes of the cluster, in nodes of 8 GPUs", parseNodes)
	asked = rig.List("pods", nil, "number of pods for a size, as NODES=PODS; twice the nodes up to 2,000 pods, then "+
		"one a node, for a size that is not named", parsePods)
	streams = rig.Some("workloads", workloads, "workloads to measure")
	chosen  = rig.Some("contenders", recipes, "contenders to measure")
	files   = rig.List("config", nil, "FILE=PROFILE,…: further contenders, profiles of scheduler configurations",
		fileContender)
	repeats    = rig.Count("repeats", 3, "number of runs of each contender")
	runTimeout = flag.Duration("run-timeout", 30*time.Minute, "how long a run may take")
	gates      = rig.List("feature-gates", nil, "feature gates of the scheduler, as Name=true,…", rig.Text)
	plot       = flag.String("plot", "",
		"write the growth of CPU time per pod with the number of nodes as SVG to this file")

	schedulerEnv []string
)

func main() {
	flag.Func("gogc", "GOGC of the scheduler (default: Go's)", addEnv("GOGC", gogcForm,
		"want a whole number of percent from 1, or off"))
	flag.Func("memlimit", "GOMEMLIMIT of the scheduler, such as 2GiB (default: none)", addEnv("GOMEMLIMIT", memlimitForm,
		"want a size such as 512MiB or 2GiB, or off"))
	rig.Main(`creates pods on a local control plane, starts a scheduler, and measures until the last pod is bound.
Each run has a new control plane. It needs the binaries of "make build".

  # Everything, with the figures of every run and the plot
  go run ./hack/bench/throughput --json runs.json --plot growth.svg

  # A quick look at two contenders
  go run ./hack/bench/throughput --nodes 200 --pods 200=200 --contenders stock,berth --repeats 1

  # What the garbage collector costs
  go run ./hack/bench/throughput --nodes 5000 --contenders stock,berth --gogc 400 --memlimit 2GiB

  # A configuration of your own beside the shipped one
  go run ./hack/bench/throughput --nodes 1000 --contenders stock,berth --config my-config.yaml=berth-scheduler`, bench)
}

// Go ends a process that it gives another GOGC or GOMEMLIMIT.
var (
	gogcForm     = regexp.MustCompile(`^(0*[1-9][0-9]*|off)$`)
	memlimitForm = regexp.MustCompile(`^([0-9]+([KMGT]i)?B|off)$`)
)

// addEnv is a flag that adds to the environment of the schedulers.
func addEnv(name string, form *regexp.Regexp, want string) func(string) error {
	return func(value string) error {
		if !form.MatchString(value) {
			return errors.New(want)
		}
		schedulerEnv = append(schedulerEnv, name+"="+value)
		return nil
	}
}

func parseNodes(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil || n < minNodes || n > 20_000 {
		return 0, fmt.Errorf("want %d to 20,000 nodes", minNodes)
	}
	return n, nil
}

// podsAt is how many pods a size is given.
type podsAt struct{ nodes, pods int }

func parsePods(text string) (podsAt, error) {
	nodes, pods, _ := strings.Cut(text, "=")
	at, err := strconv.Atoi(nodes)
	n, podsErr := strconv.Atoi(pods)
	if err != nil || podsErr != nil {
		return podsAt{}, fmt.Errorf("%q is not allowed; want NODES=PODS", text)
	}
	return podsAt{at, n}, nil
}

// bench measures everything, and prints what there is even if a run fails.
func bench(ctx context.Context, out io.Writer) (any, error) {
	contenders, err := makeContenders(*chosen, *files)
	if err != nil {
		return nil, err
	}
	trials, err := trialsOf(*sizes, *asked, *streams, contenders, *repeats)
	if err != nil {
		return nil, err
	}
	all := results{SchedulerEnv: schedulerEnv, FeatureGates: *gates}
	var failed error
	began := time.Now()
	for i, t := range trials {
		rig.Progress("%s  run %d of %d: %s", time.Since(began).Round(time.Second), i+1, len(trials), t)
		r, err := t.measure(ctx, schedulerEnv, *gates)
		if err != nil {
			failed = fmt.Errorf("%s: %w", t, err)
			break
		}
		rig.Progress("    %.2f ms CPU per pod, %.0f pods/s, %.2f cores busy with other work",
			r.CPUMillisPerPod, r.PodsPerSecond, r.OtherCores)
		if r.FailedAttempts > 0 {
			rig.Progress("    warning: %.0f attempts to place a pod failed: this run did more work than others",
				r.FailedAttempts)
		}
		all.Runs = append(all.Runs, r)
	}
	if len(all.Runs) == 0 {
		return nil, failed
	}
	return all, errors.Join(report(out, all.Runs, *plot), failed)
}

// trial is one run that is to be made.
type trial struct {
	nodes, pods, repeat int
	workload            *workload
	contender           live.Contender
}

func (t trial) String() string {
	return fmt.Sprintf("%d nodes, %s, %s, repeat %d", t.nodes, t.workload.name, t.contender.Name, t.repeat)
}

// trialsOf lists the runs in the order in which they are made.
func trialsOf(sizes []int, asked []podsAt, streams []*workload, contenders []live.Contender, repeats int) ([]trial,
	error) {
	pods := map[int]int{}
	for _, nodes := range sizes {
		pods[nodes] = 0
	}
	for _, at := range asked {
		if _, measured := pods[at.nodes]; !measured {
			return nil, fmt.Errorf("--pods: %d is not among the sizes of --nodes", at.nodes)
		}
		pods[at.nodes] = at.pods
	}
	var list []trial
	for _, nodes := range sizes {
		for _, w := range streams {
			// A number that does not fit is refused if it was asked for.
			n, capacity := pods[nodes], w.capacity(nodes)
			if n == 0 {
				n = min(defaultPods(nodes), capacity)
			}
			if n < 2 || n > capacity {
				return nil, fmt.Errorf("--pods: %d pods of workload %s at %d nodes are not allowed; want 2 to %d",
					n, w.name, nodes, capacity)
			}
			for repeat, c := range rig.InTurn(contenders, repeats) {
				list = append(list, trial{nodes, n, repeat, w, c})
			}
		}
	}
	return list, nil
}
