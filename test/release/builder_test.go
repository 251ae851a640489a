package release_test

import (
	"bytes"
	"context"
	"debug/buildinfo"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime/debug"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// imageUser is the user that the images run as.
const imageUser = 65532

// builder builds and runs images in a store of the test's own, without a daemon.
type builder struct{ store string }

// newBuilder returns a builder.
func newBuilder(t *testing.T) builder {
	t.Helper()
	box.Installed(t, "buildah", "buildah")
	if os.Getuid() != 0 {
		t.Fatal("buildah needs root here: run the test as root")
	}
	return builder{t.TempDir()}
}

func (b builder) command(ctx context.Context, args ...string) *exec.Cmd {
	store := []string{"--storage-driver=vfs", "--root=" + filepath.Join(b.store, "root"), "--runroot=" +
		filepath.Join(b.store, "run")}
	return exec.CommandContext(ctx, "buildah", append(store, args...)...)
}

// run runs a command of buildah and returns what it prints.
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
	stage := t.TempDir()
	copyFile(t, box.Binary(t, "berth-"+target), filepath.Join(stage, "src/bin/berth-"+target))
	license := filepath.Join(box.Root(t), "LICENSE")
	copyFile(t, license, filepath.Join(stage, "src/LICENSE"))
	copyFile(t, license, filepath.Join(stage, "src/bin/THIRD_PARTY_LICENSES"))
	b.run(t, "build", "--quiet", "--isolation=chroot", "--build-context=build="+stage,
		"--build-arg=GLIBC_IMAGE=scratch", "--build-arg=VERSION=1.2.3", "--build-arg=COMMIT=abc",
		"--target="+target, "--tag=berth-"+target, box.Root(t))
	return b.run(t, "from", "--isolation=chroot", "berth-"+target)
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	content, err := os.ReadFile(from)
	require.NoError(t, err)
	require.NoError(t, os.MkdirAll(filepath.Dir(to), 0o755))
	require.NoError(t, os.WriteFile(to, content, 0o755))
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

// check compares a target's image with what the project promises of its images: the user, one file and licenses,
// certificate authorities in it, labels, and that it runs.
func (b builder) check(t *testing.T, container, target string) {
	t.Helper()
	file := "/berth-" + target
	config := b.run(t, "inspect", "--type=image", "--format={{.OCIv1.Config.User}} {{.OCIv1.Config.Entrypoint}} "+
		`{{index .OCIv1.Config.Labels "org.opencontainers.image.version"}} {{index .OCIv1.Config.Labels "org.opencontainers.image.revision"}}`,
		"berth-"+target)
	if want := fmt.Sprintf("%d:%[1]d [%s] 1.2.3 abc", imageUser, file); config != want {
		t.Errorf("user, entry point, version and revision: %q, want %q", config, want)
	}
	if got, want := b.files(t, container), "["+file+" /licenses/LICENSE /licenses/THIRD_PARTY_LICENSES]"; got != want {
		t.Errorf("files of the image: %s, want %s", got, want)
	}
	info, err := buildinfo.ReadFile(box.Binary(t, "berth-"+target))
	require.NoError(t, err)
	const authorities = "golang.org/x/crypto/x509roots/fallback"
	if !slices.ContainsFunc(info.Deps, func(m *debug.Module) bool { return m.Path == authorities }) {
		t.Errorf("the binary of the image lacks %s, and the image has no other certificate authorities", authorities)
	}
	if version := b.run(t, "run", container, file, "--version"); !strings.Contains(version, "-berth.") {
		t.Errorf("the binary of the image says %q of itself", version)
	}
}

// start runs a command of a container, with these files of the image's user in /config, until the test ends.
func (b builder) start(t *testing.T, container string, files map[string][]byte, command ...string) {
	t.Helper()
	shared := t.TempDir()
	for name, content := range files {
		file := filepath.Join(shared, name)
		require.NoError(t, os.WriteFile(file, content, 0o600))
		require.NoError(t, os.Chown(file, imageUser, imageUser))
	}
	var log bytes.Buffer
	cmd := b.command(t.Context(), append([]string{"run", "--volume=" + shared + ":/config:ro", container}, command...)...)
	cmd.Stdout, cmd.Stderr = &log, &log
	// A group of its own: the command runs two processes below, and all are told to stop.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = time.Minute
	require.NoError(t, cmd.Start())
	t.Cleanup(func() {
		_ = cmd.Wait() // the test's context has ended, and with it the command
		if t.Failed() {
			t.Log(log.String())
		}
	})
}
