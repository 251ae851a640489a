// Command sign signs a release with a key of cosign: a signature of its list of checksums, and an attestation of the
// commit from which the files in that list were built (SLSA provenance). Both are bundles of Sigstore, which cosign
// verifies:
//
//	cosign verify-blob --key cosign.pub --bundle SHA256SUMS.sigstore.json --insecure-ignore-tlog SHA256SUMS
//	cosign verify-blob-attestation --key cosign.pub --bundle provenance.sigstore.json --type slsaprovenance1 \
//	  --insecure-ignore-tlog FILE
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/sigstore/sigstore-go/pkg/sign"
	"google.golang.org/protobuf/encoding/protojson"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sign:", err)
		os.Exit(1)
	}
}

// origin is from what a release was built, and by what.
type origin struct{ source, commit, version, builder string }

func run(args []string) error {
	var keyFile string
	var o origin
	flags := flag.NewFlagSet("sign", flag.ContinueOnError)
	flags.StringVar(&keyFile, "key", "", "private key of cosign generate-key-pair; its password is in COSIGN_PASSWORD")
	flags.StringVar(&o.source, "source", "", "repository of the sources, such as https://example.com/you/berth")
	flags.StringVar(&o.commit, "commit", "", "commit of the sources")
	flags.StringVar(&o.version, "version", "", "version of the release")
	flags.StringVar(&o.builder, "builder", "", "URI of what builds, such as that of a workflow")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if keyFile == "" || o.source == "" || o.commit == "" || o.version == "" || o.builder == "" || flags.NArg() != 1 {
		return errors.New("usage: sign --key FILE --source URL --commit COMMIT --version VERSION --builder URI SHA256SUMS")
	}
	key, err := readKey(keyFile, os.Getenv("COSIGN_PASSWORD"))
	if err != nil {
		return fmt.Errorf("reading the key %s: %w", keyFile, err)
	}
	sums, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	statement, err := provenance(string(sums), o)
	if err != nil {
		return fmt.Errorf("reading %s: %w", flags.Arg(0), err)
	}
	if err := write(key, &sign.PlainData{Data: sums}, flags.Arg(0)+".sigstore.json"); err != nil {
		return err
	}
	attestation := &sign.DSSEData{Data: statement, PayloadType: "application/vnd.in-toto+json"}
	return write(key, attestation, filepath.Join(filepath.Dir(flags.Arg(0)), "provenance.sigstore.json"))
}

// write signs and writes the bundle.
func write(key sign.Keypair, content sign.Content, file string) error {
	bundle, err := sign.Bundle(content, key, sign.BundleOptions{})
	if err != nil {
		return fmt.Errorf("signing %s: %w", filepath.Base(file), err)
	}
	encoded, err := protojson.Marshal(bundle)
	if err != nil {
		return fmt.Errorf("encoding %s: %w", filepath.Base(file), err)
	}
	return os.WriteFile(file, append(encoded, '\n'), 0o644)
}

// provenance is a statement of in-toto about each file of a list of checksums.
func provenance(sums string, o origin) ([]byte, error) {
	type object = map[string]any
	var subjects []object
	for lines := bufio.NewScanner(strings.NewReader(sums)); lines.Scan(); {
		sum, name, ok := strings.Cut(lines.Text(), "  ")
		if !ok || len(sum) != 64 {
			return nil, fmt.Errorf("line %q is none of sha256sum", lines.Text())
		}
		subjects = append(subjects, object{"name": name, "digest": object{"sha256": sum}})
	}
	if len(subjects) == 0 {
		return nil, errors.New("it names no file")
	}
	return json.Marshal(object{
		"_type":         "https://in-toto.io/Statement/v1",
		"subject":       subjects,
		"predicateType": "https://slsa.dev/provenance/v1",
		"predicate": object{
			"buildDefinition": object{
				"buildType":          "https://berth.dev/make-dist/v1",
				"externalParameters": object{"version": o.version},
				"resolvedDependencies": []object{
					{"uri": "git+" + o.source, "digest": object{"gitCommit": o.commit}},
				},
			},
			"runDetails": object{"builder": object{"id": o.builder}},
		},
	})
}
