package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/sandboxtest"
)

// imageUser is the user that the image runs as.
const imageUser = 65532

// builder builds and runs images in a store of the test's own, without a daemon.
type builder struct{ store string }

func newBuilder(t *testing.T) builder {
	t.Helper()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("buildah is not installed")
	}
	if os.Getuid() != 0 {
		t.Skip("buildah needs root here, or user namespaces that this test does not set up")
	}
	return builder{t.TempDir()}
}

func (b builder) command(ctx context.Context, args ...string) *exec.Cmd {
	store := []string{"--storage-driver=vfs", "--root=" + filepath.Join(b.store, "root"), "--runroot=" + filepath.Join(b.store, "run")}
	return exec.CommandContext(ctx, "buildah", append(store, args...)...)
}

func (b builder) run(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := b.command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// container builds a target of the Dockerfile around the binary of `make build`, which stands in for the stage that
// compiles, and makes a container of it. No other stage is needed: there is no image from which it could start.
func (b builder) container(t *testing.T, target string) string {
	t.Helper()
	berth, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	built := t.TempDir()
	for to, from := range map[string]string{
		"src/bin/berth-" + target:           filepath.Join(filepath.Dir(berth), "berth-"+target),
		"etc/ssl/certs/ca-certificates.crt": "/etc/ssl/certs/ca-certificates.crt",
	} {
		content, err := os.ReadFile(from)
		if err != nil {
			t.Fatal(err)
		}
		to = filepath.Join(built, to)
		if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(to, content, 0o755); err != nil {
			t.Fatal(err)
		}
	}
	b.run(t, "build", "--quiet", "--isolation=chroot", "--build-context=build="+built,
		"--build-arg=GLIBC_IMAGE=scratch", "--build-arg=VERSION=1.2.3", "--build-arg=COMMIT=abc",
		"--target="+target, "--tag=berth-"+target, "../..")
	return b.run(t, "from", "--isolation=chroot", "berth-"+target)
}

// files are those of a container.
func (b builder) files(t *testing.T, container string) string {
	t.Helper()
	root := b.run(t, "mount", container)
	var files []string
	if err := filepath.WalkDir(root, func(path string, entry os.DirEntry, err error) error {
		if err == nil && !entry.IsDir() {
			files = append(files, strings.TrimPrefix(path, root))
		}
		return err
	}); err != nil {
		t.Fatal(err)
	}
	return fmt.Sprint(files)
}

func TestTheImageOfTheNodeAgentAddsOneFileToItsBase(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	if got, want := b.files(t, b.container(t, "node-agent")), "[/berth-node-agent]"; got != want {
		t.Errorf("files of the image on an empty base: %s, want %s", got, want)
	}
}

func TestTheImageHasWhatTheSchedulerNeedsAndNothingElse(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	container := b.container(t, "scheduler")
	config := b.run(t, "inspect", "--type=image", "--format={{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} "+
		`{{index .OCIv1.Config.Labels "org.opencontainers.image.version"}} {{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}`,
		"berth-scheduler")
	if want := fmt.Sprintf("%d:%[1]d [/berth-scheduler] 1.2.3 abc", imageUser); config != want {
		t.Errorf("user, entry point, version and revision: %q, want %q", config, want)
	}
	if got, want := b.files(t, container), "[/berth-scheduler /etc/ssl/certs/ca-certificates.crt]"; got != want {
		t.Errorf("files of the image: %s, want %s", got, want)
	}
	if version := b.run(t, "run", container, "/berth-scheduler", "--version"); !strings.Contains(version, "-berth.") {
		t.Errorf("the scheduler of the image says %q of itself", version)
	}
}

func TestTheImageSchedulesOnARealControlPlane(t *testing.T) {
	t.Parallel()
	b := newBuilder(t)
	container := b.container(t, "scheduler")
	nodes := "apiVersion: v1\nkind: Node\nmetadata: {name: n1}\nstatus: {allocatable: {cpu: '8', memory: 16Gi, pods: '10'}}\n"
	box := sandboxtest.Start(t, nodes, sandbox.Options{NoKubelet: true, NoScheduler: true})

	shared := t.TempDir()
	// A time zone proves that the image has them; the system's own are not in it.
	config := `apiVersion: kubescheduler.config.k8s.io/v1
kind: KubeSchedulerConfiguration
leaderElection: {leaderElect: false}
clientConnection: {kubeconfig: /config/kubeconfig}
profiles:
  - schedulerName: berth-scheduler
    plugins:
      queueSort: {disabled: [{name: "*"}], enabled: [{name: Coscheduling}]}
      multiPoint: {enabled: [{name: Coscheduling}, {name: CostOptimized, weight: 20}]}
    pluginConfig:
      - name: CostOptimized
        args: {windows: [{name: night, from: "22:00", to: "06:00", timeZone: Europe/Berlin}]}
`
	kubeconfig, err := os.ReadFile(box.Kubeconfig())
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{"kubeconfig": kubeconfig, "config.yaml": []byte(config)} {
		file := filepath.Join(shared, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, imageUser, imageUser); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	scheduler := b.command(t.Context(), "run", "--volume="+shared+":/config:ro", container,
		"/berth-scheduler", "--config=/config/config.yaml", "--secure-port=0")
	scheduler.Stdout, scheduler.Stderr = &log, &log
	// A group of its own: the scheduler runs two processes below, and all are told to stop.
	scheduler.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	scheduler.Cancel = func() error { return syscall.Kill(-scheduler.Process.Pid, syscall.SIGTERM) }
	scheduler.WaitDelay = time.Minute
	if err := scheduler.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = scheduler.Wait() // the test's context has ended, and with it the scheduler
		if t.Failed() {
			t.Log(log.String())
		}
	})
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "p", Namespace: metav1.NamespaceDefault},
		Spec: v1.PodSpec{SchedulerName: "berth-scheduler", Containers: []v1.Container{{
			Name: "c", Image: "none", Resources: v1.ResourceRequirements{Requests: v1.ResourceList{v1.ResourceCPU: resource.MustParse("1")}},
		}}},
	}
	pods := box.Client.CoreV1().Pods(metav1.NamespaceDefault)
	if _, err := pods.Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	box.Await(t, "the scheduler of the image to bind a pod", func(ctx context.Context) (bool, error) {
		got, err := pods.Get(ctx, "p", metav1.GetOptions{})
		return err == nil && got.Spec.NodeName == "n1", err
	})
}
