package release_test

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/box"
	"berth.dev/berth/test/harness/require"
)

// checkout is a folder of the test with what the commands of pages name: bin, with kubectl in bin/tools, and a copy of
// the manifests. In the copy, the pods of the examples' Jobs run for an hour. On the control plane they would end after
// a minute, which may be over before a slow machine looks.
func checkout(t *testing.T) string {
	t.Helper()
	root, folder := box.Root(t), t.TempDir()
	require.NoError(t, os.Symlink(filepath.Join(root, "bin"), filepath.Join(folder, "bin")))
	manifests := filepath.Join(folder, "manifests")
	require.NoError(t, os.CopyFS(manifests, os.DirFS(filepath.Join(root, "manifests"))))
	err := filepath.WalkDir(filepath.Join(manifests, "examples"), func(path string, _ fs.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".yaml" {
			return err
		}
		content, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		lasting, err := withLastingJobs(content)
		if err != nil {
			return fmt.Errorf("changing %s: %w", path, err)
		}
		return os.WriteFile(path, lasting, 0o600)
	})
	require.NoError(t, err)
	return folder
}

var job = regexp.MustCompile(`(?m)^kind: Job$`)

// withLastingJobs gives the pods of Jobs that do not say how long they run an hour.
func withLastingJobs(documents []byte) ([]byte, error) {
	var changed [][]byte
	for document := range bytes.SplitSeq(documents, []byte("\n---\n")) {
		if job.Match(document) && !strings.Contains(string(document), delay) {
			var object map[string]any
			if err := yaml.Unmarshal(document, &object); err != nil {
				return nil, err
			}
			template := object["spec"].(map[string]any)["template"].(map[string]any)
			metadata := child(template, "metadata")
			child(metadata, "annotations")[delay] = "1h"
			var err error
			if document, err = yaml.Marshal(object); err != nil {
				return nil, err
			}
		}
		changed = append(changed, document)
	}
	return bytes.Join(changed, []byte("\n---\n")), nil
}

// delay is the annotation that tells how long a pod runs.
const delay = "pod-complete.stage.kwok.x-k8s.io/delay"

// child returns an object within another, which it makes if need be.
func child(object map[string]any, key string) map[string]any {
	if _, found := object[key]; !found {
		object[key] = map[string]any{}
	}
	return object[key].(map[string]any)
}
