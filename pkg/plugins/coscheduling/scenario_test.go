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

// shared is the sandbox of this package's tests, started by the first that needs it.
var shared struct {
	sync.Once
	sandbox *sandbox.Sandbox
	err     error
}

func TestMain(m *testing.M) {
	flag.Parse()
	code := m.Run()
	if shared.sandbox != nil && *keepSandbox == "" {
		if err := shared.sandbox.Stop(); err != nil {
			fmt.Fprintln(os.Stderr, err)
			code = 1
		}
	}
	os.Exit(code)
}

func startSandbox(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	shared.Do(func() {
		if *keepSandbox != "" {
			shared.sandbox, shared.err = sandbox.Open(*keepSandbox)
			return
		}
		var dir string
		if dir, shared.err = os.MkdirTemp("", "berth-gangs"); shared.err != nil {
			return
		}
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		shared.sandbox, shared.err = sandbox.Start(ctx, sandbox.Options{Dir: filepath.Join(dir, "sandbox"), SchedulerConfig: "testdata/scheduler-config.yaml", NoKubelet: true, StopWithParent: true}, nil)
	})
	if shared.err != nil {
		t.Fatalf("starting the sandbox: %v", shared.err)
	}
	return shared.sandbox
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
	box := startSandbox(t)
	// Scripts that kill the scheduler would disturb the others: they run first and alone.
	for _, alone := range []bool{true, false} {
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			if strings.Contains(string(text), "\nkill ") != alone {
				continue
			}
			t.Run(strings.TrimSuffix(filepath.Base(file), ".scenario"), func(t *testing.T) {
				if !alone {
					t.Parallel()
				}
				runScenario(t, box, string(text))
			})
		}
	}
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
