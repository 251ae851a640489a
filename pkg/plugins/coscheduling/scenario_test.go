package coscheduling_test

import (
	"context"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
)

var keepSandbox = flag.String("sandbox", "", "folder of a running sandbox to use instead of starting one")

// box is a sandbox of this package's tests, started by the first test that needs it.
type box struct {
	once    sync.Once
	config  string
	sandbox *sandbox.Sandbox
	err     error
}

var (
	plain = &box{config: "testdata/scheduler-config.yaml"}
	// reserving keeps nodes for gangs that do not fit, which scenarios of the other kind must not see.
	reserving = &box{config: "testdata/reservation-config.yaml"}
	// shipped has the profiles that are installed, with all plugins.
	shipped = &box{config: "../../../manifests/base/scheduler-config.yaml"}
)

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	for _, b := range []*box{plain, reserving, shipped} {
		if b.sandbox != nil && *keepSandbox == "" {
			if err := b.sandbox.Stop(); err != nil {
				fmt.Fprintln(os.Stderr, err)
				code = 1
			}
			_ = os.RemoveAll(filepath.Dir(b.sandbox.Dir()))
		}
	}
	os.Exit(code)
}

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
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		b.sandbox, b.err = sandbox.Start(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandbox"), SchedulerConfig: b.config, NoKubelet: true, StopWithParent: true}, nil)
	})
	if b.err != nil {
		t.Fatalf("starting the sandbox: %v", b.err)
	}
	return b.sandbox
}

// TestScenarios runs every script in testdata against the real API server and the real scheduler process.
func TestScenarios(t *testing.T) {
	if testing.Short() {
		t.Skip("needs an API server")
	}
	files, err := filepath.Glob("testdata/*.scenario")
	if err != nil || len(files) == 0 {
		t.Fatalf("no scenarios: %v", err)
	}
	// Scripts that stop or fill what all of them need would disturb the others: they run first and alone.
	for _, alone := range []bool{true, false} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if runsAlone(string(text)) != alone {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
				in := plain
				switch {
				case strings.HasPrefix(filepath.Base(file), "reservation-"):
					in = reserving
				case strings.HasPrefix(filepath.Base(file), "shipped-"):
					in = shipped
				case !alone:
					t.Parallel()
				}
				runScenario(t, in.start(t), string(text))
			})
		}
	}
}

func runsAlone(script string) bool {
	for _, command := range []string{"kill ", "away ", "alone\n"} {
		if strings.Contains(script, "\n"+command) {
			return true
		}
	}
	return false
}

func runScenario(t *testing.T, box *sandbox.Sandbox, text string) {
	lines, err := parse(text)
	if err != nil {
		t.Fatal(err)
	}
	name := strings.ToLower(strings.TrimPrefix(t.Name(), "TestScenarios/"))
	name = fmt.Sprintf("%s-%d", name, os.Getpid())
	w, err := newWorld(t, box, name)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Minute)
	watching := make(chan struct{})
	go func() {
		defer close(watching)
		w.watch(ctx)
	}()
	t.Cleanup(func() {
		cancel()
		<-watching
		w.clean()
	})
	for i := range lines {
		l := &lines[i]
		var err error
		switch step := steps[l.command]; {
		case l.command == "expect":
			err = w.expect(ctx, l)
		case l.command == "hold":
			err = w.hold(ctx, l)
		case step != nil:
			err = step(w, ctx, l)
		default:
			err = fmt.Errorf("unknown command")
		}
		if err != nil {
			t.Fatalf("line %d: %s: %v", l.number, l.text, err)
		}
	}
}

func listScenario(name string) metav1.ListOptions {
	return metav1.ListOptions{LabelSelector: scenarioLabel + "=" + name}
}

// clean removes what the scenario made in the cluster, so that it does not weigh on the others.
func (w *world) clean() {
	ctx, cancel := context.WithTimeout(context.Background(), 30*time.Second)
	defer cancel()
	now := int64(0)
	for _, namespace := range []string{w.name, w.name + "-b"} {
		_ = w.client.CoreV1().Pods(namespace).DeleteCollection(ctx, metav1.DeleteOptions{GracePeriodSeconds: &now}, metav1.ListOptions{})
		_ = w.dynamic.Resource(podGroups).Namespace(namespace).DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{})
	}
	_ = w.client.CoreV1().Nodes().DeleteCollection(ctx, metav1.DeleteOptions{}, listScenario(w.name))
}
