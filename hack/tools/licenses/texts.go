package main

import (
	"bytes"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
)

// isText matches what has to come with a binary: licenses, and the notices that Apache-2.0 asks for.
var isText = regexp.MustCompile(isLicense.String() + `|(?i)^notices?([-._].*)?$`)

// texts writes the texts of the licenses of the modules and of Go's standard library. Modules with the same text share
// it.
func texts(modules []module, out io.Writer) error {
	standard, err := standardLibrary()
	if err != nil {
		return err
	}
	usersOf := map[string][]string{}
	var order []string
	for _, m := range append([]module{standard}, modules...) {
		files, err := m.files(isText)
		if err != nil {
			return err
		}
		if len(files) == 0 {
			return fmt.Errorf("module %s %s has no license", m.path, m.version)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				return fmt.Errorf("reading %s: %w", file, err)
			}
			text := strings.TrimSpace(strings.ReplaceAll(string(content), "\r\n", "\n"))
			if usersOf[text] == nil {
				order = append(order, text)
			}
			if user := m.path + " " + m.version; !slices.Contains(usersOf[text], user) {
				usersOf[text] = append(usersOf[text], user)
			}
		}
	}
	var page bytes.Buffer
	page.WriteString(
		"The program contains Go's standard library and the modules that are named below, under these licenses. The " +
			"source of\n" +
			"each module is what `go mod download MODULE@VERSION` brings.\n")
	for _, text := range order {
		fmt.Fprintf(&page, "\n%s\n%s\n\n%s\n", strings.Repeat("=", 100), strings.Join(usersOf[text], "\n"), text)
	}
	_, err = out.Write(page.Bytes())
	return err
}

// standardLibrary is that of the Go that builds.
func standardLibrary() (module, error) {
	output, err := exec.Command("go", "env", "GOROOT", "GOVERSION").Output()
	if err != nil {
		return module{}, fmt.Errorf("asking for the folder of Go: %w", err)
	}
	root, version, _ := strings.Cut(strings.TrimSpace(string(output)), "\n")
	return module{path: "std", version: version, dir: filepath.Clean(root)}, nil
}
