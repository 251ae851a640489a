// Command sbom writes the CycloneDX bill of materials of a Go binary, from what the toolchain recorded in the binary.
// The bytes depend on the command line, the binary and the page of licenses alone: binaries do not record licenses.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"errors"
	"flag"
	"fmt"
	"os"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func main() {
	if err := run(os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "sbom:", err)
		os.Exit(1)
	}
}

func run(args []string) error {
	var p program
	var created, licenses, out string
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.StringVar(&p.name, "name", "", "name of the program")
	flags.StringVar(&p.version, "version", "", "version of the program")
	flags.StringVar(&created, "created", "", "time of the commit (RFC 3339)")
	flags.StringVar(&licenses, "licenses", "", "page with the license of each module (docs/internals/licenses.md)")
	flags.StringVar(&out, "out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if p.name == "" || p.version == "" || licenses == "" || out == "" || flags.NArg() != 1 {
		return errors.New("usage: sbom --name NAME --version VERSION --created TIME --licenses PAGE --out FILE BINARY")
	}
	page, err := os.ReadFile(licenses)
	if err != nil {
		return err
	}
	if p.created, err = time.Parse(time.RFC3339, created); err != nil {
		return fmt.Errorf("reading --created: %w", err)
	}
	content, err := os.ReadFile(flags.Arg(0))
	if err != nil {
		return err
	}
	p.sum = sha256.Sum256(content)
	info, err := buildinfo.ReadFile(flags.Arg(0))
	if err != nil {
		return fmt.Errorf("reading the build information: %w", err)
	}
	bom, err := bill(p, info, readLicenses(string(page)))
	if err != nil {
		return err
	}
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := errors.Join(encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	return nil
}
