package release_test

import (
	"crypto/sha256"
	"encoding/hex"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// distribution runs the script of make dist with a compiler that gives a small script for each of our programs.
type distribution struct{ dir, tools string }

func newDistribution(t *testing.T) distribution {
	t.Helper()
	d := distribution{dir: filepath.Join(t.TempDir(), "dist"), tools: t.TempDir()}
	program := filepath.Join(d.tools, "program")
	for file, content := range map[string]string{
		program: "#!/bin/sh\necho it runs\n",
		filepath.Join(d.tools, "go"): `#!/bin/bash
case " $* " in
*' -trimpath '*)
  while [ "$1" != -o ]; do shift; done
  mkdir -p "${2%/*}"
  exec cp ` + program + ` "$2" ;;
esac
exec ` + box.Installed(t, "go", "golang") + ` "$@"
`,
	} {
		require.NoError(t, os.WriteFile(file, []byte(content), 0o755))
	}
	return d
}

// build runs the script and returns the checksums of the files.
func (d distribution) build(t *testing.T) map[string]string {
	t.Helper()
	command := exec.CommandContext(t.Context(), filepath.Join(box.Root(t), "hack/dist.sh"), d.dir)
	command.Env = append(os.Environ(), "PATH="+d.tools+":"+os.Getenv("PATH"), "VERSION=1.2.3",
		"COMMIT=abc", "TREE_STATE=clean",
		"BUILD_DATE=2026-01-02T03:04:05Z", "LDFLAGS=-w", "ARCHITECTURES=amd64 arm64",
		"REGISTRY=registry.example/you", "IMAGE=registry.example/you/berth-scheduler@sha256:abc",
		"RELEASE_URL=file://"+d.dir)
	if out, err := command.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	entries, err := os.ReadDir(d.dir)
	require.NoError(t, err)
	sums := map[string]string{}
	for _, entry := range entries {
		sum := sha256.Sum256(d.read(t, entry.Name()))
		sums[entry.Name()] = hex.EncodeToString(sum[:])
	}
	return sums
}

func (d distribution) read(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join(d.dir, name))
	require.NoError(t, err)
	return content
}

// archived are the names of the files in an archive.
func (d distribution) archived(t *testing.T, name string) []string {
	t.Helper()
	names, err := exec.CommandContext(t.Context(), "tar", "-tzf", filepath.Join(d.dir, name)).Output()
	require.NoError(t, err)
	return strings.Fields(string(names))
}

// installs runs the script that installs the command and returns what it says.
func (d distribution) installs(t *testing.T, bin string) (string, error) {
	t.Helper()
	command := exec.CommandContext(t.Context(), "sh", filepath.Join(d.dir, "install.sh"))
	command.Env = append(os.Environ(), "BIN="+bin)
	out, err := command.CombinedOutput()
	return string(out), err
}

func TestADistributionHasWhatAReleaseNeeds(t *testing.T) {
	t.Parallel()
	d := newDistribution(t)
	sums := d.build(t)
	want := []string{"SHA256SUMS", "berth-1.2.3.tgz", "berth.krew.yaml", "install.sh", "install.yaml"}
	for _, name := range []string{"berth", "berth-extender", "berth-node-agent", "berth-scheduler"} {
		for _, architecture := range []string{"amd64", "arm64"} {
			release := name + "-1.2.3-linux-" + architecture
			want = append(want, release+".tar.gz")
			if diff := cmp.Diff([]string{name, "LICENSE", "THIRD_PARTY_LICENSES"},
				d.archived(t, release+".tar.gz")); diff != "" {
				t.Errorf("files of %s (-want +got):\n%s", release, diff)
			}
		}
	}
	slices.Sort(want)
	assert.Equal(t, "files", want, slices.Sorted(maps.Keys(sums)))
	for line := range strings.Lines(string(d.read(t, "SHA256SUMS"))) {
		sum, name, _ := strings.Cut(strings.TrimSpace(line), "  ")
		if sums[name] != sum {
			t.Errorf("SHA256SUMS has %s for %s, whose sum is %s", sum, name, sums[name])
		}
	}

	// Among the texts are that of Go itself, notices, and one beside another of the same module.
	texts, err := exec.CommandContext(t.Context(), "tar", "-xzOf", filepath.Join(d.dir, "berth-1.2.3-linux-arm64.tar.gz"),
		"THIRD_PARTY_LICENSES").Output()
	for _, want := range []string{"\nGo's standard library\n\nCopyright 2009 The Go Authors", "\ngo.yaml.in/yaml/v2@",
		"/LICENSE.libyaml\n\nThe following files", "/NOTICE\n"} {
		if err != nil || !strings.Contains(string(texts), want) {
			t.Errorf("the texts of the licenses lack %q (error %v)", want, err)
		}
	}

	// Images are named as in the registry.
	chart := filepath.Join(d.dir, "berth-1.2.3.tgz")
	rendered, err := exec.CommandContext(t.Context(), box.Tool(t, "helm"), "template", "berth", chart,
		"--set=nodeAgent.enabled=true").CombinedOutput()
	for _, name := range []string{"berth-scheduler", "berth-node-agent"} {
		if err != nil || !strings.Contains(string(rendered), "image: registry.example/you/"+name+":"+chartVersion(t)) {
			t.Errorf("the chart does not render with the image of %s of the registry: %v\n%.3000s", name, err, rendered)
		}
	}
	const image = "image: registry.example/you/berth-scheduler@sha256:abc\n"
	if n := strings.Count(string(d.read(t, "install.yaml")), image); n != 1 {
		t.Errorf("install.yaml names the image of the scheduler %d times, want once", n)
	}

	var plugin struct {
		Spec struct {
			Version   string
			Platforms []struct {
				Selector         struct{ MatchLabels struct{ OS, Arch string } }
				URI, SHA256, Bin string
			}
		}
	}
	if err := yaml.Unmarshal(d.read(t, "berth.krew.yaml"), &plugin); err != nil || len(plugin.Spec.Platforms) != 2 ||
		plugin.Spec.Version != "v1.2.3" {
		t.Fatalf("the manifest of the plugin is %+v (error %v)", plugin, err)
	}
	for _, p := range plugin.Spec.Platforms {
		archive := "berth-1.2.3-linux-" + p.Selector.MatchLabels.Arch + ".tar.gz"
		if p.URI != "file://"+d.dir+"/"+archive || p.SHA256 != sums[archive] || p.Bin != "berth" ||
			p.Selector.MatchLabels.OS != "linux" {
			t.Errorf("platform %+v, want %s with the sum %s", p, archive, sums[archive])
		}
	}

	bin := filepath.Join(t.TempDir(), "bin")
	if out, err := d.installs(t, bin); err != nil || !strings.Contains(out, "installed "+bin+"/berth") {
		t.Errorf("install.sh: %v\n%s", err, out)
	}
	if out, err := exec.CommandContext(t.Context(), filepath.Join(bin, "berth")).CombinedOutput(); err != nil ||
		string(out) != "it runs\n" {
		t.Errorf("what was installed says %q (error %v)", out, err)
	}

	if diff := cmp.Diff(sums, d.build(t)); diff != "" {
		t.Errorf("built again (-first +second):\n%s", diff)
	}

	for _, architecture := range []string{"amd64", "arm64"} {
		require.NoError(t, os.WriteFile(filepath.Join(d.dir, "berth-1.2.3-linux-"+architecture+".tar.gz"), []byte("forged"),
			0o600))
	}
	other := filepath.Join(t.TempDir(), "bin")
	if out, err := d.installs(t, other); err == nil || !strings.Contains(out, "is not the archive of this release") {
		t.Errorf("install.sh with a forged archive: %v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(other, "berth")); err == nil {
		t.Error("a forged archive was installed")
	}
}
