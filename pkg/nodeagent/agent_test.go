package nodeagent

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"berth.dev/berth/pkg/nodeagent/nvidiasmitest"
	"berth.dev/berth/pkg/wellknown"
	"berth.dev/berth/test/harness/require"
)

// newAgent makes an agent whose nvidia-smi prints what the file holds, and fails where it holds nothing.
func newAgent(t *testing.T) (a *Agent, client *fake.Clientset, says func(text string)) {
	t.Helper()
	file := filepath.Join(t.TempDir(), "answer")
	says = func(text string) {
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	client = fake.NewClientset(&corev1.Node{ObjectMeta: metav1.ObjectMeta{Name: "n",
		Annotations: map[string]string{"other": "stays"}}})
	tool := nvidiasmitest.Program(t, "[ -s "+file+" ] && exec cat "+file+"; echo no driver; exit 9")
	return New(client, "n", tool, time.Minute, time.Hour), client, says
}

const twoLinked = "\tGPU0\tGPU1\nGPU0\t X \tNV12\nGPU1\tNV12\t X \n"

func TestTheAnnotationFollowsTheLinks(t *testing.T) {
	t.Parallel()
	a, client, says := newAgent(t)
	const links = `{"links":[[0,1,"NV12"]]}`
	for _, step := range []struct {
		name, says string
		fails      bool
		want       string
		writes     float64
	}{
		{"the driver is not there yet", "", true, "", 0},
		{"two linked GPUs", twoLinked, false, links, 1},
		{"nothing has changed", twoLinked, false, links, 1},
		{"the driver fails: what was written stays", "", true, links, 1},
		{"an answer that makes no sense", "GPU0\n", true, links, 1},
		{"GPUs that are connected through the system", "\tGPU0\tGPU1\nGPU0\t X \tSYS\nGPU1\tSYS\t X \n", false,
			`{"links":[]}`, 2},
		{"one GPU", "\tGPU0\n" + "GPU0\t X \n", false, "", 3},
	} {
		says(step.says)
		if err := a.publish(t.Context()); (err != nil) != step.fails {
			t.Errorf("%s: error %v, want one: %t", step.name, err, step.fails)
		}
		node, err := client.CoreV1().Nodes().Get(t.Context(), "n", metav1.GetOptions{})
		require.NoError(t, err)
		if got := node.Annotations[wellknown.GPULinksKey]; got != step.want || node.Annotations["other"] != "stays" {
			t.Errorf("%s: annotations %v, want links %q", step.name, node.Annotations, step.want)
		}
		writes := 0.0
		for _, action := range client.Actions() {
			if action.GetVerb() == "patch" {
				writes++
			}
		}
		if writes != step.writes {
			t.Errorf("%s: %g writes by now, want %g", step.name, writes, step.writes)
		}
	}
}

func TestAWriteThatFailsIsTriedAgain(t *testing.T) {
	t.Parallel()
	a, client, says := newAgent(t)
	says(twoLinked)
	down := true
	client.PrependReactor("patch", "nodes", func(clienttesting.Action) (bool, runtime.Object, error) {
		return down, nil, errors.New("the API server is away")
	})
	if err := a.publish(t.Context()); err == nil || !strings.Contains(err.Error(), wellknown.GPULinksKey) {
		t.Errorf("error %v, want one that names the annotation", err)
	}
	down = false
	if err := a.publish(t.Context()); err != nil {
		t.Error(err)
	}
}

func TestAnAgentIsNotAliveWithoutADriver(t *testing.T) {
	t.Parallel()
	a, _, says := newAgent(t)
	fail := func() {
		if a.publish(t.Context()) == nil {
			t.Fatal("no error without a driver")
		}
	}
	fail()
	if err := a.alive(); err != nil {
		t.Errorf("at once: %v", err)
	}
	a.failing.Store(time.Now().Add(-failsAfter).UnixNano())
	fail()
	if a.alive() == nil {
		t.Error("it is alive after a long time without a driver")
	}
	a.note(t.Context(), errHangs)
	if err := a.alive(); err != nil {
		t.Errorf("while the driver hangs: %v", err)
	}
	a.failing.Store(time.Now().Add(-failsAfter).UnixNano())
	says(twoLinked)
	if err := a.publish(t.Context()); err != nil || a.alive() != nil {
		t.Errorf("with a driver: %v, %v", err, a.alive())
	}
}

func TestWhatGoesWrongIsSaid(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		script  string
		timeout time.Duration
		want    string
		hangs   bool
	}{
		"the driver is not loaded": {script: "echo 'NVIDIA-SMI has failed'; exit 9", timeout: time.Minute,
			want: `exit status 9: "NVIDIA-SMI has failed"`},
		"it hangs": {script: "exec sleep 600", timeout: 200 * time.Millisecond, want: "no answer within 200ms", hangs: true},
		"it hangs and leaves a son": {script: "sleep 600", timeout: 200 * time.Millisecond, want: "no answer within 200ms",
			hangs: true},
		"it prints without end": {script: "exec cat /dev/zero", timeout: time.Minute, want: "more than 1048576 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, err := ask(t.Context(), nvidiasmitest.Program(t, tc.script), tc.timeout)
			if err == nil || !strings.Contains(err.Error(), tc.want) || errors.Is(err, errHangs) != tc.hangs {
				t.Errorf("error %v, want one with %q, and that the driver hangs: %t", err, tc.want, tc.hangs)
			}
		})
	}
	if _, err := ask(t.Context(), filepath.Join(t.TempDir(), "nvidia-smi"), time.Minute); err == nil {
		t.Error("no error without a tool")
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	t.Parallel()
	a, _, says := newAgent(t)
	says(twoLinked)
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan struct{})
	go func() { defer close(done); a.Run(ctx) }()
	cancel()
	<-done
}
