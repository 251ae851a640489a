package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"sigs.k8s.io/kustomize/kyaml/kio"
	"sigs.k8s.io/yaml"
)

func TestOneFileInstallsDefinitionsAndScheduler(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	if err := run([]string{"--image", "example.com/berth-scheduler@sha256:abc", "--manifests", "../../manifests"},
		&out); err != nil {
		t.Fatal(err)
	}
	nodes, err := (&kio.ByteReader{Reader: &out, OmitReaderAnnotations: true}).Read()
	if err != nil {
		t.Fatal(err)
	}
	count := map[string]int{}
	for _, node := range nodes {
		count[node.GetKind()]++
		if node.GetKind() != "Deployment" {
			continue
		}
		var deployment struct {
			Spec struct {
				Template struct {
					Spec struct{ Containers []struct{ Image string } }
				}
			}
		}
		if err := yaml.Unmarshal([]byte(node.MustString()), &deployment); err != nil {
			t.Fatal(err)
		}
		if got := deployment.Spec.Template.Spec.Containers[0].Image; got != "example.com/berth-scheduler@sha256:abc" {
			t.Errorf("the image is %s", got)
		}
	}
	if count["CustomResourceDefinition"] != 4 || count["Deployment"] != 1 || count["ConfigMap"] != 2 {
		t.Errorf("kinds %v, want 4 definitions, a Deployment, its configuration and what it keeps", count)
	}
}

func TestWhatCannotBeRenderedIsRefused(t *testing.T) {
	t.Parallel()
	twice := t.TempDir()
	for _, dir := range []string{"crd", "base"} {
		if err := os.MkdirAll(filepath.Join(twice, dir), 0o700); err != nil {
			t.Fatal(err)
		}
		for name, text := range map[string]string{
			"kustomization.yaml": "resources: [two.yaml]\n",
			"two.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\n" +
				"spec: {containers: [{image: 'berth-scheduler:1'}, {image: 'other:1'}]}\n",
		} {
			if err := os.WriteFile(filepath.Join(twice, dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for want, args := range map[string][]string{
		"usage: ":        nil,
		"rendering crd":  {"--image", "i", "--manifests", t.TempDir()},
		"name not one i": {"--image", "i", "--manifests", twice},
	} {
		if err := run(args, &bytes.Buffer{}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: error %v, want %q", args, err, want)
		}
	}
}
