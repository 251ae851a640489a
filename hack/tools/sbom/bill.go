package main

import (
	"crypto/sha256"
	"fmt"
	"runtime/debug"
	"strings"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

// program is what the build information does not say.
type program struct {
	name, version string
	created       time.Time
	sum           [sha256.Size]byte
}

// licensesOf are the licenses of modules by path and version, as an SPDX expression.
type licensesOf map[[2]string]string

// readLicenses reads the table of docs/internals/licenses.md.
func readLicenses(page string) licensesOf {
	all := licensesOf{}
	for line := range strings.Lines(page) {
		if cells := strings.Split(strings.TrimSpace(line), " | "); len(cells) == 3 {
			all[[2]string{strings.TrimPrefix(cells[0], "| "), cells[1]}] = strings.ReplaceAll(strings.TrimSuffix(cells[2], " |"),
				", ", " AND ")
		}
	}
	return all
}

// bill lists the modules of a binary, and the Go release, whose standard library is part of it as well.
func bill(p program, info *debug.BuildInfo, licenses licensesOf) (*cyclonedx.BOM, error) {
	main := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeApplication, Name: p.name, Version: p.version,
		PackageURL: packageURL(info.Main.Path, p.version) + "#" + strings.TrimPrefix(info.Path, info.Main.Path+"/"),
		Hashes:     &[]cyclonedx.Hash{{Algorithm: cyclonedx.HashAlgoSHA256, Value: fmt.Sprintf("%x", p.sum)}},
	}
	main.BOMRef = main.PackageURL
	main.Licenses = &cyclonedx.Licenses{{Expression: "Apache-2.0"}}
	components := []cyclonedx.Component{library("std", strings.TrimPrefix(info.GoVersion, "go"), "", "BSD-3-Clause")}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		license := licenses[[2]string{module.Path, module.Version}]
		if license == "" {
			return nil, fmt.Errorf("the page of licenses lacks module %s %s: run make generate", module.Path, module.Version)
		}
		components = append(components, library(module.Path, module.Version, module.Sum, license))
	}
	references := make([]string, len(components))
	for i := range components {
		references[i] = components[i].BOMRef
	}
	bom := cyclonedx.NewBOM()
	bom.SerialNumber = serialNumber(p.sum)
	bom.Metadata = &cyclonedx.Metadata{Timestamp: p.created.UTC().Format(time.RFC3339), Component: &main}
	bom.Components = &components
	bom.Dependencies = &[]cyclonedx.Dependency{{Ref: main.BOMRef, Dependencies: &references}}
	return bom, nil
}

func library(path, version, sum, license string) cyclonedx.Component {
	component := cyclonedx.Component{
		Type: cyclonedx.ComponentTypeLibrary, Name: path, Version: version, PackageURL: packageURL(path, version),
		Licenses: &cyclonedx.Licenses{{Expression: license}},
	}
	component.BOMRef = component.PackageURL
	if sum != "" {
		// The sum of go.sum hashes a list of files, not one file, so it is not one of CycloneDX' own hashes.
		component.Properties = &[]cyclonedx.Property{{Name: "berth:go.sum", Value: sum}}
	}
	return component
}

// packageURL escapes the plus sign of +incompatible, as the specification of package URLs requires.
func packageURL(path, version string) string {
	return "pkg:golang/" + path + "@" + strings.ReplaceAll(version, "+", "%2B")
}

// serialNumber is a UUID of version 8, whose bits are free to choose: those of the binary's checksum.
func serialNumber(sum [sha256.Size]byte) string {
	id := sum[:16]
	id[6], id[8] = id[6]&0x0f|0x80, id[8]&0x3f|0x80
	return fmt.Sprintf("urn:uuid:%x-%x-%x-%x-%x", id[:4], id[4:6], id[6:8], id[8:10], id[10:])
}
