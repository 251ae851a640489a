package scenarios_test

import (
	"cmp"
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/klog/v2"

	"berth.dev/berth/pkg/sandbox"
)

var keepSandbox = flag.String("sandbox", "", "folder of a running sandbox to use instead of starting one")

// slack multiplies every limit of a scenario, those of single commands among them. The limits are those of a quiet
// machine. A busy one gives the scheduler less of its time, for which machineClock accounts, and waits for more than
// processors. A condition that holds early is not waited for any longer.
var slack = flag.Int("slack", 4, "factor for the limits of scenarios; 1 on a machine that does nothing else")

const (
	// atATime is how many scenarios of one control plane run at the same time. They spend most of their time waiting.
	atATime = 6
	// boxesAtATime is how many control planes run at the same time. One that waits takes 4% of a core.
	boxesAtATime = 4
	// startWithin bounds the start of a control plane, which takes five seconds on a free machine.
	startWithin = 4 * time.Minute
)

// box is a sandbox of this package's tests, started by the first test that needs it.
type box struct {
	once    sync.Once
	options sandbox.Options
	sandbox *sandbox.Sandbox
	err     error
	// own is the configuration of a scheduler that runs in this process, with plugins that the one that is shipped has
	// not.
	own string
}

// controllers are those that make pods, claims and bound volumes of what scenarios create. The disruption controller is
// not among them: scenarios say themselves how many disruptions are allowed.
var controllers = []string{"job-controller", "replicaset-controller", "statefulset-controller",
	"resourceclaim-controller",
	"persistentvolume-binder-controller"}

var (
	plain = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/gangs.yaml", Controllers: controllers}}
	// preempting is another of that kind, for scenarios that evict: they take a third of the time.
	preempting = &box{options: plain.options}
	// nominating has the feature gate as Kubernetes has it by default, where the manifests switch it off.
	nominating = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/gangs.yaml", Controllers: controllers,
		FeatureGates: []string{"NominatedNodeNameForExpectation=true"}}}
	// native has the profiles that are installed, and knows the scheduler's own groups besides ours.
	native = &box{options: sandbox.Options{SchedulerConfig: "../../manifests/base/scheduler-config.yaml",
		FeatureGates: []string{"GenericWorkload=true"}, RuntimeConfig: []string{"scheduling.k8s.io/v1beta1=true"}}}
	// foreign serves the groups of Kubernetes itself, which the scheduler plans as it plans its own: the gate of its core
	// is off.
	foreign = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/gangs.yaml", Controllers: controllers,
		FeatureGates: []string{"GenericWorkload=true", "TopologyAwareWorkloadScheduling=true", "CompositePodGroup=true"},
		SchedulerFeatureGates: []string{"CompositePodGroup=false", "TopologyAwareWorkloadScheduling=false",
			"GenericWorkload=false"},
		RuntimeConfig: []string{"scheduling.k8s.io/v1beta1=true", "scheduling.k8s.io/v1alpha3=true"}}}
	// reserving keeps nodes for gangs that do not fit, which scenarios of the other kind must not see.
	reserving = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/reservation.yaml",
		Controllers: controllers}}
	// starting soon keeps nodes no more for a gang that does not start.
	starting = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/starts.yaml"}}
	// limited keeps few of all nodes for a namespace, and not for long.
	limited = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/limited.yaml"}}
	// leveled has service levels, and lets pods age within seconds.
	leveled = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/sla.yaml"}}
	// hourly has price windows.
	hourly = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/hours.yaml"}}
	// named knows GPUs by names of its own.
	named = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/names.yaml"}}
	// shipped has the profiles that are installed, with all plugins.
	shipped = &box{options: sandbox.Options{SchedulerConfig: "../../manifests/base/scheduler-config.yaml",
		Controllers: controllers}}
	// owning makes gangs of what controllers create.
	owning = &box{options: sandbox.Options{SchedulerConfig: "testdata/config/owners.yaml", Controllers: controllers}}
	// unknown has a plugin besides ours that keeps state of its own.
	unknown = &box{options: sandbox.Options{NoScheduler: true}, own: "testdata/config/unknown.yaml"}
)

// boxes are in the order in which they start: first those that take longest.
var boxes = []*box{plain, preempting, reserving, shipped, nominating, starting, foreign, owning, leveled, hourly,
	native, named, unknown}

func TestMain(m *testing.M) {
	flag.Parse()
	if *logs < 0 {
		klog.LogToStderr(false)
		klog.SetOutput(io.Discard)
	}
	klogFlags := flag.NewFlagSet("klog", flag.ContinueOnError)
	klog.InitFlags(klogFlags)
	if err := klogFlags.Set("v", strconv.Itoa(max(*logs, 0))); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(2)
	}
	code := m.Run()
	for _, b := range boxes { // those of tests that have panicked
		if err := b.stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

// ownContext lasts as long as the box whose scheduler runs in this process; stopOwn ends that.
var ownContext, stopOwn = context.WithCancel(context.Background())

func (b *box) start(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	b.once.Do(func() {
		if *keepSandbox != "" {
			b.sandbox, b.err = sandbox.Open(*keepSandbox)
			return
		}
		var dir string
		if dir, b.err = os.MkdirTemp("", "berth-gangs"); b.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), startWithin)
		defer cancel()
		b.options.Dir, b.options.NoKubelet, b.options.StopWithParent = filepath.Join(dir, "sandbox"), true, true
		b.sandbox, b.err = sandbox.Start(ctx, b.options, nil)
		if b.err == nil && b.own != "" {
			b.err = runOwnScheduler(ownContext, b.sandbox, b.own)
		}
	})
	if b.err != nil {
		t.Fatalf("starting the sandbox: %v", b.err)
	}
	return b.sandbox
}

// stop ends the sandbox if it was started for the tests.
func (b *box) stop() error {
	if b.sandbox == nil || *keepSandbox != "" {
		return nil
	}
	if b.own != "" {
		stopOwn()
	}
	running := b.sandbox
	b.sandbox = nil
	return errors.Join(running.Stop(), os.RemoveAll(filepath.Dir(running.Dir())))
}

// config is the file of the configuration of the box's scheduler.
func (b *box) config() string { return cmp.Or(b.own, b.options.SchedulerConfig) }

// gates are the feature gates of the box's scheduler.
func (b *box) gates() []string {
	gates := []string{"NominatedNodeNameForExpectation=false"}
	if len(b.options.SchedulerFeatureGates) > 0 {
		// They take back those of all components.
		return gates
	}
	return append(gates, b.options.FeatureGates...)
}

// script is a scenario in the box that it runs in.
type script struct {
	name, text string
	in         *box
	// alone scripts need the machine for themselves, disturbing ones their box: they disturb its scheduler, or count what
	// it does.
	alone, disturbing bool
}

// scripts reads the scenarios. One that says so is run with both settings of a feature gate.
func scripts() ([]script, error) {
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil {
		return nil, err
	}
	var all []script
	for _, file := range files {
		data, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		text := string(data)
		s := script{name: strings.TrimSuffix(filepath.Base(file), ".scenario"), text: text, in: plain,
			alone:      says(text, "alone"),
			disturbing: says(text, "kill") || says(text, "away") || says(text, "count")}
		kind, _, _ := strings.Cut(s.name, "-")
		switch kind {
		case "preempt":
			s.in = preempting
		case "reservation":
			s.in, s.disturbing = reserving, true
		case "starts":
			s.in, s.disturbing = starting, true
		case "limited":
			s.in, s.disturbing = limited, true
		case "shipped", "gpu", "cost", "policy", "address", "network":
			s.in, s.disturbing = shipped, true
		case "names":
			s.in = named
		case "sla":
			s.in = leveled
		case "hours":
			s.in = hourly
		case "native":
			s.in = native
		case "dialect":
			s.in = foreign
		case "owners":
			s.in = owning
		case "unknown":
			s.in = unknown
		}
		all = append(all, s)
		if says(text, "both-gates") {
			s.name, s.in = s.name+"-nominating", nominating
			all = append(all, s)
		}
	}
	if len(all) == 0 {
		return nil, fmt.Errorf("there are none in testdata")
	}
	return all, nil
}

// says reports whether a line of the script has this command.
func says(text, command string) bool {
	for l := range strings.Lines(text) {
		if words := strings.Fields(l); len(words) > 0 && words[0] == command {
			return true
		}
	}
	return false
}
