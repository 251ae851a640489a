// Command sbom writes the CycloneDX bill of materials of a Go binary, from what the toolchain recorded in the binary.
// The bytes depend on the command line and the binary alone. Licenses are left out: binaries do not record them.
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
	var created, out string
	flags := flag.NewFlagSet("sbom", flag.ContinueOnError)
	flags.StringVar(&p.name, "name", "", "name of the program")
	flags.StringVar(&p.version, "version", "", "version of the program")
	flags.StringVar(&created, "created", "", "time of the commit (RFC 3339)")
	flags.StringVar(&out, "out", "", "file to write")
	if err := flags.Parse(args); err != nil {
		return err
	}
	if p.name == "" || p.version == "" || out == "" || flags.NArg() != 1 {
		return errors.New("usage: sbom --name NAME --version VERSION --created TIME --out FILE BINARY")
	}
	var err error
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
	file, err := os.Create(out)
	if err != nil {
		return err
	}
	encoder := cyclonedx.NewBOMEncoder(file, cyclonedx.BOMFileFormatJSON).SetPretty(true)
	if err := errors.Join(encoder.EncodeVersion(bill(p, info), cyclonedx.SpecVersion1_6), file.Close()); err != nil {
		return fmt.Errorf("writing %s: %w", out, err)
	}
	return nil
}
