package main

import (
	"bytes"
	"runtime/debug"
	"strings"
	"testing"
	"time"

	cyclonedx "github.com/CycloneDX/cyclonedx-go"
)

func TestABillNamesEveryModule(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		module                        debug.Module
		wantURL, wantSum, wantLicense string
	}{
		"a module with its sum": {
			debug.Module{Path: "k8s.io/api", Version: "v0.37.0", Sum: "h1:x="}, "pkg:golang/k8s.io/api@v0.37.0", "h1:x=",
			"Apache-2.0",
		},
		"the plus sign of a version is escaped": {
			debug.Module{Path: "a.b/c", Version: "v2.0.0+incompatible"}, "pkg:golang/a.b/c@v2.0.0%2Bincompatible", "",
			"BSD-3-Clause AND MIT",
		},
		"a replaced module is listed as its replacement": {
			debug.Module{
				Path: "a.b/c", Version: "v1.0.0", Replace: &debug.Module{Path: "d.e/f", Version: "v1.1.0", Sum: "h1:y="},
			},
			"pkg:golang/d.e/f@v1.1.0", "h1:y=", "MIT",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p := program{name: "berth", version: "0.1.0", created: time.Unix(0, 0), sum: [32]byte{1, 2, 3}}
			info := &debug.BuildInfo{
				GoVersion: "go1.26.8", Path: "berth.dev/berth/cmd/berth", Main: debug.Module{Path: "berth.dev/berth"},
				Deps: []*debug.Module{&c.module},
			}
			var encoded bytes.Buffer
			const page = "| module | version | licenses |\n|---|---|---|\n" +
				"| k8s.io/api | v0.37.0 | Apache-2.0 |\n| a.b/c | v2.0.0+incompatible | BSD-3-Clause, MIT |\n" +
				"| d.e/f | v1.1.0 | MIT |\n"
			bom, err := bill(p, info, readLicenses(page))
			if err != nil {
				t.Fatal(err)
			}
			encoder := cyclonedx.NewBOMEncoder(&encoded, cyclonedx.BOMFileFormatJSON)
			if err := encoder.EncodeVersion(bom, cyclonedx.SpecVersion1_6); err != nil {
				t.Fatal(err)
			}
			var got cyclonedx.BOM
			if err := cyclonedx.NewBOMDecoder(&encoded, cyclonedx.BOMFileFormatJSON).Decode(&got); err != nil {
				t.Fatal(err)
			}
			if want := "urn:uuid:01020300-0000-8000-8000-000000000000"; got.SerialNumber != want {
				t.Errorf("serial number %q, want %q", got.SerialNumber, want)
			}
			if got, want := got.Metadata.Component.PackageURL, "pkg:golang/berth.dev/berth@0.1.0#cmd/berth"; got != want {
				t.Errorf("main component %q, want %q", got, want)
			}
			components := *got.Components
			if len(components) != 2 || components[0].PackageURL != "pkg:golang/std@1.26.8" {
				t.Fatalf("components %+v, want the standard library and one module", components)
			}
			if components[1].PackageURL != c.wantURL {
				t.Errorf("package URL %q, want %q", components[1].PackageURL, c.wantURL)
			}
			if license := (*components[1].Licenses)[0].Expression; license != c.wantLicense {
				t.Errorf("license %q, want %q", license, c.wantLicense)
			}
			var sum string
			if components[1].Properties != nil {
				sum = (*components[1].Properties)[0].Value
			}
			if sum != c.wantSum {
				t.Errorf("sum %q, want %q", sum, c.wantSum)
			}
		})
	}
}

func TestAModuleWithoutAKnownLicenseIsRefused(t *testing.T) {
	t.Parallel()
	info := &debug.BuildInfo{GoVersion: "go1.26.8", Deps: []*debug.Module{{Path: "a.b/c", Version: "v2.0.0"}}}
	_, err := bill(program{}, info, readLicenses("| a.b/c | v1.0.0 | MIT |\n"))
	if err == nil || !strings.Contains(err.Error(), "lacks module a.b/c v2.0.0") {
		t.Errorf("error %v, want one that names the module", err)
	}
}
