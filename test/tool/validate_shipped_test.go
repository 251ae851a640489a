package tool_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"berth.dev/berth/pkg/validate"
	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// TestNoFalseAlarmInExamples takes the files of each folder together, as an apply of a folder does.
func TestNoFalseAlarmInExamples(t *testing.T) {
	t.Parallel()
	root := filepath.Join("..", "..", "manifests", "examples")
	folders, err := os.ReadDir(root)
	require.NoError(t, err)
	checked := 0
	for _, folder := range folders {
		if !folder.IsDir() {
			continue
		}
		r := &validate.Report{}
		files, err := filepath.Glob(filepath.Join(root, folder.Name(), "*.yaml"))
		require.NoError(t, err)
		for _, file := range files {
			require.NoError(t, r.ReadFile(file))
		}
		r.Finish()
		checked += r.Objects
		for _, f := range r.Findings {
			// What the example of a scorer costs is said in it, and what is not followed of the group of another project.
			known := f.Rule == "batching" || f.Rule == "no-effect" && folder.Name() == "26-other-groups"
			if f.Severity != validate.Note && !known {
				t.Error(f)
			}
		}
	}
	if checked < 50 {
		t.Errorf("only %d objects were checked", checked)
	}
}

// TestNoFalseAlarmInDocuments checks each object that a page shows.
func TestNoFalseAlarmInDocuments(t *testing.T) {
	t.Parallel()
	pages, err := filepath.Glob(filepath.Join("..", "..", "docs", "*.md"))
	require.NoError(t, err)
	checked := 0
	for _, page := range append(pages, filepath.Join("..", "..", "README.md")) {
		text, err := os.ReadFile(page)
		require.NoError(t, err)
		for _, object := range objectsIn(string(text)) {
			r := &validate.Report{}
			require.NoError(t, r.Read(strings.NewReader(object), page))
			r.Finish()
			checked++
			for _, f := range r.Findings {
				if f.Severity == validate.Error {
					t.Errorf("%s\n%s", f, object)
				}
			}
		}
	}
	if checked < 8 {
		t.Errorf("only %d objects were checked", checked)
	}
}

// objectsIn are the fenced or indented blocks that begin with an apiVersion; those with an ellipsis are parts of
// objects.
func objectsIn(text string) []string {
	var objects []string
	var block []string
	end := func() {
		if object := strings.Join(block, "\n") + "\n"; len(block) > 1 && !strings.Contains(object, "…") &&
			!strings.Contains(object, "...") {
			objects = append(objects, object)
		}
		block = nil
	}
	indent := ""
	for _, line := range strings.Split(text, "\n") {
		content := strings.TrimLeft(line, " ")
		if block == nil {
			if strings.HasPrefix(content, "apiVersion:") {
				indent = line[:len(line)-len(content)]
				block = []string{content}
			}
			continue
		}
		inside, ok := strings.CutPrefix(line, indent)
		hereEnds := content == "END" || content == "YAML" || content == "EOF"
		if !ok && content != "" || hereEnds || strings.HasPrefix(content, "```") {
			end()
			continue
		}
		block = append(block, inside)
	}
	end()
	return objects
}

func TestAFolderIsReadWithWhatIsInIt(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for name, text := range map[string]string{
		"pod.yaml": podHead + "  contaners: []\n", "deep/list.json": `{"apiVersion": "v1", "kind": "Pod", "sepc": {}}`, "deep/c.yml": "apiVersion: v1\nkind: Thing\n",
		"README.md": "# nothing", ".hidden.yaml": "a", ".git/config.yaml": "a",
	} {
		path := filepath.Join(dir, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o755))
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	}
	r := &validate.Report{}
	require.NoError(t, r.ReadFile(dir))
	r.Finish()
	var files []string
	for _, f := range r.Findings {
		name, err := filepath.Rel(dir, f.File)
		require.NoError(t, err)
		files = append(files, filepath.ToSlash(name))
	}
	if want := []string{"deep/c.yml", "deep/list.json", "pod.yaml"}; !slices.Equal(slices.Compact(files), want) {
		t.Errorf("findings in %v, want %v", files, want)
	}

	empty := t.TempDir()
	if err := (&validate.Report{}).ReadFile(empty); err == nil ||
		!strings.Contains(err.Error(), "no file that ends in .yaml, .yml or .json") {
		t.Errorf("an empty folder: %v", err)
	}
	if err := (&validate.Report{}).ReadFile(filepath.Join(dir, "absent")); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("an absent folder: %v", err)
	}
}

func TestNoShippedConfigurationIsRefused(t *testing.T) {
	t.Parallel()
	checked := 0
	for _, root := range []string{"../../manifests", "../../charts/berth/files"} {
		err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".yaml" {
				return err
			}
			text, err := os.ReadFile(path)
			if err != nil || !strings.Contains(string(text), "kind: KubeSchedulerConfiguration") {
				return err
			}
			checked++
			r := &validate.Report{}
			if err := r.ReadFile(path); err != nil {
				return err
			}
			r.Finish()
			var files []string
			for _, f := range r.Findings {
				if f.Severity == validate.Error {
					t.Error(f)
				}
				if f.Rule == "not-checked" {
					files = append(files, f.Field)
				}
			}
			var want []string
			if filepath.Base(path) == "stock-scheduler-config.yaml" {
				want = []string{"extenders[0].tlsConfig.caFile", "extenders[0].tlsConfig.certFile",
					"extenders[0].tlsConfig.keyFile"}
			}
			assert.Equal(t, path+": fields that were not checked", want, files)
			return nil
		})
		require.NoError(t, err)
	}
	if checked < 12 {
		t.Errorf("only %d files have configurations", checked)
	}
}
