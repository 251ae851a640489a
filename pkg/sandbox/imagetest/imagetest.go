// Package imagetest lets the tests of a command, two folders below the Dockerfile, build its image and run what is in it.
package imagetest

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

	"berth.dev/berth/pkg/sandbox"
)

// User is the user that the images run as.
const User = 65532

// Builder builds and runs images in a store of the test's own, without a daemon.
type Builder struct{ store string }

// New returns a Builder, and skips the test where images cannot be built.
func New(t *testing.T) Builder {
	t.Helper()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Skip("buildah is not installed")
	}
	if os.Getuid() != 0 {
		t.Skip("buildah needs root here, or user namespaces that this test does not set up")
	}
	return Builder{t.TempDir()}
}

func (b Builder) command(ctx context.Context, args ...string) *exec.Cmd {
	store := []string{"--storage-driver=vfs", "--root=" + filepath.Join(b.store, "root"), "--runroot=" + filepath.Join(b.store, "run")}
	return exec.CommandContext(ctx, "buildah", append(store, args...)...)
}

// Run runs a command of buildah and returns what it prints.
func (b Builder) Run(t *testing.T, args ...string) string {
	t.Helper()
	var stdout, stderr bytes.Buffer
	cmd := b.command(t.Context(), args...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		t.Fatalf("buildah %s: %v\n%s", strings.Join(args, " "), err, stderr.String())
	}
	return strings.TrimSpace(stdout.String())
}

// Container builds a target of the Dockerfile around the binary of `make build`, which stands in for the stage that
// compiles, and makes a container of it. No other stage is needed: there is no image from which it could start.
func (b Builder) Container(t *testing.T, target string) string {
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
	b.Run(t, "build", "--quiet", "--isolation=chroot", "--build-context=build="+built,
		"--build-arg=GLIBC_IMAGE=scratch", "--build-arg=VERSION=1.2.3", "--build-arg=COMMIT=abc",
		"--target="+target, "--tag=berth-"+target, "../..")
	return b.Run(t, "from", "--isolation=chroot", "berth-"+target)
}

// Files are those of a container.
func (b Builder) Files(t *testing.T, container string) string {
	t.Helper()
	root := b.Run(t, "mount", container)
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

// Check compares a target's image with what the project promises of its images: the user, one binary, certificate
// authorities, labels, and a binary that runs. It returns a container of it.
func (b Builder) Check(t *testing.T, target string) string {
	t.Helper()
	container, binary := b.Container(t, target), "/berth-"+target
	config := b.Run(t, "inspect", "--type=image", "--format={{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} "+
		`{{index .OCIv1.Config.Labels "org.opencontainers.image.version"}} {{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}`,
		"berth-"+target)
	if want := fmt.Sprintf("%d:%[1]d [%s] 1.2.3 abc", User, binary); config != want {
		t.Errorf("user, entry point, version and revision: %q, want %q", config, want)
	}
	if got, want := b.Files(t, container), fmt.Sprintf("[%s /etc/ssl/certs/ca-certificates.crt]", binary); got != want {
		t.Errorf("files of the image: %s, want %s", got, want)
	}
	if version := b.Run(t, "run", container, binary, "--version"); !strings.Contains(version, "-berth.") {
		t.Errorf("the binary of the image says %q of itself", version)
	}
	return container
}

// Start runs a command of a container, with these files of the image's user in /config, until the test ends.
func (b Builder) Start(t *testing.T, container string, files map[string][]byte, command ...string) {
	t.Helper()
	shared := t.TempDir()
	for name, content := range files {
		file := filepath.Join(shared, name)
		if err := os.WriteFile(file, content, 0o600); err != nil {
			t.Fatal(err)
		}
		if err := os.Chown(file, User, User); err != nil {
			t.Fatal(err)
		}
	}
	var log bytes.Buffer
	cmd := b.command(t.Context(), append([]string{"run", "--volume=" + shared + ":/config:ro", container}, command...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	// A group of its own: the command runs two processes below, and all are told to stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Wait() // the test's context has ended, and with it the command
		if t.Failed() {
			t.Log(log.String())
		}
	})
}
