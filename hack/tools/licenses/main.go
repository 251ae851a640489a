// Command licenses lists every module that is linked into the given commands, with its version and the licenses that
// apply to the packages that are linked. It fails for a module without a license that it knows, and for a license that
// is not allowed. Run it in the folder of the commands' module:
//
//	go -C hack/tools/licenses build -o /tmp/licenses . && /tmp/licenses ./cmd/... >docs/internals/licenses.md
//
// With --texts as its first argument it writes the texts of these licenses and the notices instead, which have to come
// with a binary.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/google/licensecheck"
)

// allowed are the licenses, by their SPDX identifiers, that ask for no more of a binary than that it names them.
var allowed = []string{
	"0BSD", "Apache-2.0", "BSD-2-Clause", "BSD-2-Clause-Views", "BSD-3-Clause", "CC0-1.0", "ISC", "MIT", "MIT-0",
	"MPL-2.0", "Unlicense", "Zlib",
}

// leastPercent of a file have to be the text of licenses. What is left is copyright lines and headings.
const leastPercent = 60

var isLicense = regexp.MustCompile(`(?i)^(un)?(licen[cs]e|copying|copyright)([-._].*)?$`)

// module is what is known of one.
type module struct {
	path, version, dir string
	// packages are the folders that are linked.
	packages []string
}

func main() {
	packages, do := os.Args[1:], list
	if len(packages) > 0 && packages[0] == "--texts" {
		packages, do = packages[1:], texts
	}
	if len(packages) == 0 {
		_, _ = fmt.Fprintln(os.Stderr, "usage: licenses [--texts] PACKAGE...")
		os.Exit(2)
	}
	modules, err := linked(packages)
	if err == nil {
		err = do(modules, os.Stdout)
	}
	if err != nil {
		_, _ = fmt.Fprintln(os.Stderr, "licenses:", err)
		os.Exit(1)
	}
}

// list writes the page with the licenses of the modules.
func list(modules []module, out io.Writer) error {
	byLicenses := map[string][]module{}
	var failed []error
	for _, m := range modules {
		licenses, err := m.licenses()
		failed = append(failed, err)
		byLicenses[licenses] = append(byLicenses[licenses], m)
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return write(byLicenses, out)
}

// linked asks go for the modules whose packages are linked, but for the module itself and the standard library.
func linked(packages []string) ([]module, error) {
	var failed bytes.Buffer
	list := exec.Command("go", append([]string{"list", "-deps", "-json=Dir,Module"}, packages...)...)
	list.Env = append(os.Environ(), "GOOS=linux", "CGO_ENABLED=0") // as they are released
	list.Stderr = &failed
	output, err := list.Output()
	if err != nil {
		return nil, fmt.Errorf("listing the packages: %w: %s", err, failed.String())
	}
	return readPackages(bytes.NewReader(output))
}

func readPackages(list io.Reader) ([]module, error) {
	type goModule struct {
		Path, Version, Dir string
		Main               bool
		Replace            *goModule
	}
	byPath := map[string]*module{}
	for decoder := json.NewDecoder(list); ; {
		var p struct {
			Dir    string
			Module *goModule
		}
		err := decoder.Decode(&p)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, fmt.Errorf("reading the list of packages: %w", err)
		}
		if p.Module == nil || p.Module.Main {
			continue
		}
		m := p.Module
		if m.Replace != nil {
			m = m.Replace
		}
		if byPath[m.Path] == nil {
			byPath[m.Path] = &module{path: m.Path, version: m.Version, dir: m.Dir}
		}
		byPath[m.Path].packages = append(byPath[m.Path].packages, p.Dir)
	}
	var all []module
	for _, m := range byPath {
		all = append(all, *m)
	}
	slices.SortFunc(all, func(a, b module) int { return strings.Compare(a.path, b.path) })
	return all, nil
}

// licenses are those of the folders of the linked packages and of the folders above them, separated by commas.
func (m module) licenses() (string, error) {
	files, err := m.files(isLicense)
	if err != nil {
		return "", err
	}
	found := map[string]bool{}
	for _, file := range files {
		ids, err := idsOf(file)
		if err != nil {
			return "", fmt.Errorf("module %s %s: %w", m.path, m.version, err)
		}
		for _, id := range ids {
			found[id] = true
		}
	}
	if len(found) == 0 {
		return "", fmt.Errorf("module %s %s has no license that is known", m.path, m.version)
	}
	ids := slices.Sorted(maps.Keys(found))
	for _, id := range ids {
		if !slices.Contains(allowed, id) {
			return "", fmt.Errorf("module %s %s has the license %s; allowed are %s", m.path, m.version, id,
				strings.Join(allowed, ", "))
		}
	}
	return strings.Join(ids, ", "), nil
}

// files are those with such a name in the folders of the linked packages and in the folders above them.
func (m module) files(named *regexp.Regexp) ([]string, error) {
	seen := map[string]bool{}
	var files []string
	for _, dir := range append([]string{m.dir}, m.packages...) {
		for ; !seen[dir] && strings.HasPrefix(dir, m.dir); dir = filepath.Dir(dir) {
			seen[dir] = true
			entries, err := os.ReadDir(dir)
			if err != nil {
				return nil, fmt.Errorf("reading module %s: %w", m.path, err)
			}
			for _, entry := range entries {
				// A license of documents is not one of what is linked.
				ext := filepath.Ext(entry.Name())
				if entry.Type().IsRegular() && named.MatchString(entry.Name()) && ext != ".go" && ext != ".docs" {
					files = append(files, filepath.Join(dir, entry.Name()))
				}
			}
		}
	}
	return files, nil
}

// idsOf names the licenses whose texts make up a file.
func idsOf(path string) ([]string, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	coverage := licensecheck.Scan(text)
	if coverage.Percent < leastPercent {
		if strings.HasPrefix(strings.ToLower(filepath.Base(path)), "copyright") {
			return nil, nil // names of authors
		}
		return nil, fmt.Errorf("%s is not the text of a license that is known (%.0f%% of it are)", path, coverage.Percent)
	}
	var ids []string
	for _, match := range coverage.Match {
		ids = append(ids, match.ID)
	}
	return ids, nil
}

// write prints a page with the list, by licenses.
func write(byLicenses map[string][]module, out io.Writer) error {
	var page bytes.Buffer
	page.WriteString("# Licenses of dependencies\n\n")
	page.WriteString("Generated by `make generate`: every module that is linked into a released binary, by the licenses of\n")
	page.WriteString("the packages that are linked. `make verify` fails for a module without a known license, and for a\n")
	page.WriteString("license that is not one of these:\n\n")
	for _, id := range allowed {
		fmt.Fprintf(&page, "- %s\n", id)
	}
	for _, ids := range slices.Sorted(maps.Keys(byLicenses)) {
		fmt.Fprintf(&page, "\n## %s\n\n```text\n", ids)
		for _, m := range byLicenses[ids] {
			fmt.Fprintf(&page, "%s@%s\n", m.path, m.version)
		}
		page.WriteString("```\n")
	}
	_, err := out.Write(page.Bytes())
	return err
}
