// Package validate checks scheduler configurations and manifests before they reach a cluster. It reports the line of
// each unknown field and invalid value, and warns of valid combinations that defeat each other.
//
// The command berth validate calls it with files, and optionally with a cluster. The checks of plugin arguments are in
// apis/config. It never changes a file or a cluster. It reports what it could not check. It does not validate objects
// of Kubernetes as the API server does, for which there is kubectl apply --dry-run=server.
package validate

import (
	"cmp"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"go.yaml.in/yaml/v3"
	schedulerconfig "k8s.io/kubernetes/pkg/scheduler/apis/config"

	"berth.dev/berth/pkg/gang"
	"berth.dev/berth/pkg/process/crd"
	"berth.dev/berth/pkg/process/rights"
	"berth.dev/berth/pkg/screen/tables"
	"berth.dev/berth/pkg/yamldoc"
)

// Severity of a finding.
type Severity string

// An error prevents the scheduler from starting, or an object from having the intended effect. A warning is about valid
// input that defeats a purpose.
const (
	Error   Severity = "error"
	Warning Severity = "warning"
	// Note says what was not checked.
	Note Severity = "note"
)

// Finding is one thing that is wrong with a file.
type Finding struct {
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Severity Severity `json:"severity"`
	// Rule names the check.
	Rule string `json:"rule"`
	// Object is the kind and the name of the object, or the profile; empty where the document has neither.
	Object string `json:"object,omitempty"`
	// Field is the path of the field; empty where the finding is not about one.
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
}

// String is the finding in the form file:line: severity: object: field: message (rule).
func (f Finding) String() string { return f.colored(tables.Screen{}) }

// severityColors are for terminals; notes have none.
var severityColors = map[Severity]tables.Color{Error: tables.Red, Warning: tables.Yellow}

func (f Finding) colored(screen tables.Screen) string {
	severity := string(f.Severity)
	if color, ok := severityColors[f.Severity]; ok {
		severity = screen.Paint(color, severity)
	}
	at := f.File
	if f.Line > 0 {
		at += ":" + strconv.Itoa(f.Line)
	}
	parts := []string{at, severity}
	for _, part := range []string{f.Object, f.Field} {
		if part != "" {
			parts = append(parts, part)
		}
	}
	return fmt.Sprintf("%s: %s (%s)", strings.Join(parts, ": "), f.Message, f.Rule)
}

// Report is the result of checking files.
type Report struct {
	Findings []Finding `json:"findings"`
	Profiles []Profile `json:"profiles"`
	// Objects counts the documents that were checked, configurations included.
	Objects int `json:"objects"`
	// Rights are the missing rights for the configurations, if the API server was asked.
	Rights *rights.Report `json:"rights,omitempty"`
	// Pruned are the fields of custom resources that the API server drops, if it was asked.
	Pruned []crd.Pruned `json:"pruned"`

	known          map[Finding]bool
	configurations []*schedulerconfig.KubeSchedulerConfiguration
	// inventory is for checks of references between objects.
	inventory inventory
	// groups are those of Kubernetes and of other schedulers in the files, by the gang of their pods.
	groups map[gang.ID]*namedGroup
}

// Configurations returns the valid scheduler configurations, with their defaults.
func (r *Report) Configurations() []*schedulerconfig.KubeSchedulerConfiguration {
	return r.configurations
}

// Has reports whether there is a finding of that severity.
func (r *Report) Has(s Severity) bool {
	return slices.ContainsFunc(r.Findings, func(f Finding) bool { return f.Severity == s })
}

// maxFileBytes bounds what is read of one file.
const maxFileBytes = 16 << 20

// Read checks a file of YAML or JSON documents and adds what it finds to the report.
func (r *Report) Read(in io.Reader, name string) error {
	data, err := io.ReadAll(io.LimitReader(in, maxFileBytes+1))
	if err != nil {
		return fmt.Errorf("reading %s: %w", name, err)
	}
	if len(data) > maxFileBytes {
		return fmt.Errorf("%s: larger than %d MiB", name, maxFileBytes>>20)
	}
	r.check(name, data, 0)
	return nil
}

// extensions of the files that are read in a folder.
var extensions = []string{".yaml", ".yml", ".json"}

// ReadFile reads a file, or the YAML and JSON files in a folder and its subfolders, except names that begin with a dot.
func (r *Report) ReadFile(root string) error {
	if info, err := os.Stat(root); err == nil && info.IsDir() {
		root = filepath.Clean(root) + string(filepath.Separator) // the walk follows a link to a folder
	}
	found := false
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		inside := path != root
		hidden := inside && strings.HasPrefix(entry.Name(), ".")
		switch {
		case entry.IsDir() && hidden:
			return filepath.SkipDir
		case entry.IsDir() || hidden || inside && !slices.Contains(extensions, strings.ToLower(filepath.Ext(path))):
			return nil
		}
		found = true
		file, err := os.Open(path)
		if err != nil {
			return err
		}
		defer file.Close()
		return r.Read(file, path)
	})
	if err != nil {
		return fmt.Errorf("reading the files: %w", err)
	}
	if !found {
		return fmt.Errorf("%s: there is no file that ends in .yaml, .yml or .json in the folder", filepath.Clean(root))
	}
	return nil
}

// check reads documents whose first line is line offset+1 of the file.
func (r *Report) check(name string, data []byte, offset int) {
	documents := yamldoc.Split(data)
	for _, doc := range documents {
		var node yaml.Node
		offset := offset + doc.First - 1
		text, err := yamldoc.JSON(doc.Text)
		if err == nil {
			err = yaml.Unmarshal(doc.Text, &node)
		}
		if err != nil {
			r.add(yamlFindings(name, offset, unnumbered(doc.Text), err)...)
		} else if len(node.Content) > 0 && string(text) != "null" {
			d := &document{report: r, file: name, offset: offset, root: node.Content[0], json: text}
			d.check()
		}
	}
	if len(documents) == 0 {
		r.add(Finding{File: name, Severity: Error, Rule: "empty", Message: "there is no document in it"})
	}
}

// add adds findings once: an alias can lead to the same part of a document several times.
func (r *Report) add(findings ...Finding) {
	for _, f := range findings {
		if r.known[f] {
			continue
		}
		if r.known == nil {
			r.known = map[Finding]bool{}
		}
		r.known[f] = true
		r.Findings = append(r.Findings, f)
	}
}

// unnumbered is the line of an error without a line number: that of the first character that is invalid in YAML, else
// the first line, which the parser never numbers.
func unnumbered(data []byte) int {
	line := 1
	for len(data) > 0 {
		r, size := utf8.DecodeRune(data)
		if r == utf8.RuneError && size == 1 || r < ' ' && !strings.ContainsRune("\t\n\r", r) || r == '\x7f' {
			return line
		}
		if r == '\n' {
			line++
		}
		data = data[size:]
	}
	return 1
}

// yamlFindings reads the line numbers from the messages of the YAML parser. Line is that of a message without one.
func yamlFindings(name string, offset, line int, err error) []Finding {
	var findings []Finding
	for text := range strings.Lines(strings.TrimPrefix(err.Error(), "yaml: unmarshal errors:\n")) {
		own, text := yamldoc.Complaint(errors.New(text))
		findings = append(findings, Finding{File: name, Line: cmp.Or(own, line) + offset, Severity: Error, Rule: "syntax",
			Message: text})
	}
	return findings
}

func oneLine(text string) string { return strings.Join(strings.Fields(text), " ") }

// Finish checks references between the objects of all files, and orders the findings by file and line.
func (r *Report) Finish() {
	profiles := r.knownProfiles()
	for _, n := range r.inventory.nodes {
		n.check(r.gpuKeys(""))
	}
	for _, p := range r.inventory.pods {
		p.keys = r.gpuKeys(p.pod.Spec.SchedulerName)
		p.values()
		p.unread(r)
		p.windowAndClass(r)
		// Other schedulers read groups of their own.
		if slices.Contains(profiles, p.scheduler()) {
			p.foreign()
			p.foreignMinimum()
		}
	}
	r.namedGroups(profiles)
	r.inventory.check(profiles)
	slices.SortStableFunc(r.Findings, func(a, b Finding) int {
		if a.File != b.File {
			return strings.Compare(a.File, b.File)
		}
		return a.Line - b.Line
	})
}
