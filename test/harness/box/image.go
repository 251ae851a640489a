package box

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/pkg/sandbox"
)

// imageUser is the user that the images run as.
const imageUser = 65532

// Builder builds and runs images in a store of the test's own, without a daemon.
type Builder struct{ store string }

// NewBuilder returns a Builder.
func NewBuilder(t *testing.T) Builder {
	t.Helper()
	if _, err := exec.LookPath("buildah"); err != nil {
		t.Fatal("buildah is missing: install the package buildah")
	}
	if os.Getuid() != 0 {
		t.Fatal("buildah needs root here: run the test as root")
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
	stage := t.TempDir()
	copyFile(t, binary(t, target), filepath.Join(stage, "src/bin/berth-"+target))
	b.Run(t, "build", "--quiet", "--isolation=chroot", "--build-context=build="+stage,
		"--build-arg=GLIBC_IMAGE=scratch", "--build-arg=VERSION=1.2.3", "--build-arg=COMMIT=abc",
		"--target="+target, "--tag=berth-"+target, Root(t))
	return b.Run(t, "from", "--isolation=chroot", "berth-"+target)
}

// Unpacked makes a container from an OCI archive that is packed, as `make dist` does it, around the binary of `make
// build`.
func (b Builder) Unpacked(t *testing.T, target string) string {
	t.Helper()
	dir := t.TempDir()
	packer := filepath.Join(dir, "ociarchive")
	run(t, "go", "build", "-C", filepath.Join(Root(t), "hack", "tools", "ociarchive"), "-o", packer, ".")
	pack := func(file, archive string) {
		run(t, packer, "--name", "berth-"+target, "--version", "1.2.3", "--revision", "abc", "--created", "2026-01-02T03:04:05Z",
			"--user", fmt.Sprintf("%d:%[1]d", imageUser), "--out", archive, runtime.GOARCH+"="+file)
	}
	archive := filepath.Join(dir, "archive.oci.tar")
	pack(binary(t, target), archive)
	image := b.Run(t, "pull", "--quiet", "oci-archive:"+archive)
	b.Run(t, "tag", image, "berth-"+target)
	return b.Run(t, "from", "--isolation=chroot", "berth-"+target)
}

// binary is the one that `make build` has made for a target.
func binary(t *testing.T, target string) string {
	t.Helper()
	berth, err := sandbox.FindBinary()
	if err != nil {
		t.Fatal(err)
	}
	return filepath.Join(filepath.Dir(berth), "berth-"+target)
}

// Root is the folder of the repository, which the test runs in or below.
func Root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "Dockerfile")); err == nil {
			return dir
		}
		if dir == filepath.Dir(dir) {
			t.Fatal("the test does not run in the repository")
		}
		dir = filepath.Dir(dir)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, content, 0o755); err != nil {
		t.Fatal(err)
	}
}

func run(t *testing.T, name string, args ...string) {
	t.Helper()
	if output, err := exec.CommandContext(t.Context(), name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %s: %v\n%s", name, strings.Join(args, " "), err, output)
	}
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

// Check compares a target's image, of which this is a container, with what the project promises of its images: the
// user, one file, certificate authorities in it, labels, and that it runs.
func (b Builder) Check(t *testing.T, container, target string) {
	t.Helper()
	file := "/berth-" + target
	config := b.Run(t, "inspect", "--type=image", "--format={{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} "+
		`{{index .OCIv1.Config.Labels "org.opencontainers.image.version"}} {{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}`,
		"berth-"+target)
	if want := fmt.Sprintf("%d:%[1]d [%s] 1.2.3 abc", imageUser, file); config != want {
		t.Errorf("user, entry point, version and revision: %q, want %q", config, want)
	}
	if got, want := b.Files(t, container), "["+file+"]"; got != want {
		t.Errorf("files of the image: %s, want %s", got, want)
	}
	info, err := buildinfo.ReadFile(binary(t, target))
	if err != nil {
		t.Fatal(err)
	}
	const authorities = "golang.org/x/crypto/x509roots/fallback"
	if !slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == authorities }) {
		t.Errorf("the binary of the image lacks %s, and the image has no other certificate authorities", authorities)
	}
	if version := b.Run(t, "run", container, file, "--version"); !strings.Contains(version, "-berth.") {
		t.Errorf("the binary of the image says %q of itself", version)
	}
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
		if err := os.Chown(file, imageUser, imageUser); err != nil {
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
