// Command install prints the definitions and the scheduler of manifests/ as one file, which kubectl apply takes:
//
//	go run ./hack/install --image REGISTRY/berth-scheduler@sha256:... >install.yaml
package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"

	"sigs.k8s.io/kustomize/api/krusty"
	"sigs.k8s.io/kustomize/kyaml/filesys"
)

func main() {
	if err := run(os.Args[1:], os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "install:", err)
		os.Exit(1)
	}
}

func run(args []string, out io.Writer) error {
	var image, manifests string
	flags := flag.NewFlagSet("install", flag.ContinueOnError)
	flags.StringVar(&image, "image", "", "image of the scheduler")
	flags.StringVar(&manifests, "manifests", "manifests", "folder of the manifests")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if image == "" || flags.NArg() > 0 {
		return errors.New("usage: install --image IMAGE [--manifests FOLDER]")
	}
	var all bytes.Buffer
	all.WriteString(
		"# The definitions and the scheduler of Berth, in kube-system: kubectl apply --server-side -f install.yaml\n")
	for _, dir := range []string{"crd", "base"} {
		resources, err := krusty.MakeKustomizer(krusty.MakeDefaultOptions()).Run(filesys.MakeFsOnDisk(), manifests+"/"+dir)
		if err != nil {
			return fmt.Errorf("rendering %s: %w", dir, err)
		}
		content, err := resources.AsYaml()
		if err != nil {
			return fmt.Errorf("rendering %s: %w", dir, err)
		}
		if dir == "base" {
			if content, err = withImage(content, image); err != nil {
				return err
			}
		}
		all.WriteString("---\n")
		all.Write(content)
	}
	_, err := out.Write(all.Bytes())
	return err
}

// withImage names the image in the one place that names the shipped one.
func withImage(content []byte, image string) ([]byte, error) {
	const field = "image: "
	before, after, found := bytes.Cut(content, []byte(field+"berth-scheduler:"))
	_, after, line := bytes.Cut(after, []byte("\n"))
	if !found || !line || bytes.Contains(after, []byte(field)) {
		return nil, errors.New("the manifests name not one image of the scheduler")
	}
	return bytes.Join([][]byte{before, []byte(field + image + "\n"), after}, nil), nil
}
