// Package docs_test checks that what the pages show is there: links, commands and their flags, files.
package docs_test

import (
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode"

	schedulingv1alpha1 "berth.dev/berth/pkg/apis/scheduling/v1alpha1"
	"berth.dev/berth/test/harness/require"
)

const top = ".."

// pages returns the Markdown files of the project by path from the top.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := filepath.WalkDir(top, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != top && strings.HasPrefix(entry.Name(), "."), entry.IsDir() &&
			slices.Contains([]string{"bin", "dist", "site"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) != ".md":
			return nil
		}
		data, err := os.ReadFile(path)
		relative, _ := filepath.Rel(top, path)
		all[relative] = string(data)
		return err
	})
	require.NoError(t, err)
	if len(all) < 15 {
		t.Fatalf("%d pages found in %s", len(all), top)
	}
	return all
}

var (
	links    = regexp.MustCompile(`\]\(([^)\s]+)\)`)
	headings = regexp.MustCompile(`(?m)^#+ (.*)$`)
	fences   = regexp.MustCompile("(?s)```.*?```")
)

// anchors are the names by which GitHub links the headings of a page.
func anchors(page string) map[string]bool {
	names := map[string]bool{}
	for _, heading := range headings.FindAllStringSubmatch(fences.ReplaceAllString(page, ""), -1) {
		names[strings.Map(func(r rune) rune {
			switch {
			case r == ' ':
				return '-'
			case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
				return unicode.ToLower(r)
			default:
				return -1
			}
		}, heading[1])] = true
	}
	return names
}

func TestLinksOfThePagesLeadSomewhere(t *testing.T) {
	t.Parallel()
	all := pages(t)
	for name, page := range all {
		for _, link := range links.FindAllStringSubmatch(page, -1) {
			if strings.Contains(link[1], "://") {
				continue
			}
			path, anchor, _ := strings.Cut(link[1], "#")
			target := name
			if path != "" {
				target = filepath.Join(filepath.Dir(name), path)
			}
			if _, err := os.Stat(filepath.Join(top, target)); err != nil {
				t.Errorf("%s links to %s, which does not exist", name, link[1])
			} else if anchor != "" && !anchors(all[target])[anchor] {
				t.Errorf("%s links to %s: %s has no such heading", name, link[1], target)
			}
		}
	}
}

// figures finds amounts of money and numbers with decimals or a thousand.
var figures = regexp.MustCompile(`\d+(?:[.,]\d+)+`)

func TestFiguresOfTheReadmeAreOnThePagesThatItLinksTo(t *testing.T) {
	t.Parallel()
	all, checked := pages(t), 0
	for line := range strings.Lines(all["README.md"]) {
		link := links.FindStringSubmatch(line)
		if !strings.HasPrefix(line, "|") || link == nil {
			continue
		}
		target, _, _ := strings.Cut(link[1], "#")
		for _, figure := range figures.FindAllString(line, -1) {
			checked++
			if !strings.Contains(all[target], figure) {
				t.Errorf("%s does not have %s of README.md", target, figure)
			}
		}
	}
	if checked < 9 {
		t.Errorf("%d figures checked", checked)
	}
}

// statusFields finds paths below the status of an object.
var statusFields = regexp.MustCompile("`status\\.([A-Za-z.\\[\\]]+)`")

// fieldOf returns the type of a field by its name in JSON, of a list that of its elements, and nil for one that is not
// there.
func fieldOf(of reflect.Type, name string) reflect.Type {
	for of.Kind() == reflect.Pointer || of.Kind() == reflect.Slice {
		of = of.Elem()
	}
	for i := 0; of.Kind() == reflect.Struct && i < of.NumField(); i++ {
		if tag, _, _ := strings.Cut(of.Field(i).Tag.Get("json"), ","); tag == name {
			return of.Field(i).Type
		}
	}
	return nil
}

func TestFieldsOfPodGroupsInThePagesExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, page := range pages(t) {
		for _, path := range statusFields.FindAllStringSubmatch(page, -1) {
			names := strings.Split(strings.ReplaceAll(path[1], "[]", ""), ".")
			field := reflect.TypeFor[schedulingv1alpha1.PodGroupStatus]()
			if fieldOf(field, names[0]) == nil {
				continue // of another kind
			}
			checked++
			for _, next := range names {
				if field = fieldOf(field, next); field == nil {
					t.Errorf("%s: the status of a PodGroup has no %s", name, path[1])
					break
				}
			}
		}
	}
	if checked < 3 {
		t.Errorf("%d fields checked", checked)
	}
}

// commands are the lines of a page that a reader may paste: those of fenced shell blocks, and indented ones. Lines
// that end in a backslash go on.
func commands(page string) []string {
	page = strings.ReplaceAll(page, "\\\n", " ")
	var found []string
	fenced, shell := false, false
	for line := range strings.Lines(page) {
		line = strings.TrimRight(line, "\n")
		if strings.HasPrefix(strings.TrimSpace(line), "```") {
			fenced = !fenced
			shell = fenced && slices.Contains([]string{"sh", "bash", "console"}, strings.TrimPrefix(strings.TrimSpace(line), "```"))
			continue
		}
		if shell || !fenced && strings.HasPrefix(line, "    ") {
			command, _, _ := strings.Cut(strings.TrimSpace(line), " #")
			found = append(found, command)
		}
	}
	return found
}

// arguments splits a command as a shell does, as far as the pages need it; what follows a redirection or a pipe is
// left out.
func arguments(command string) []string {
	var args []string
	var word strings.Builder
	quote := rune(0)
	for _, r := range command + " " {
		switch {
		case quote == 0 && strings.ContainsRune("|>;&", r):
			return args
		case quote == 0 && (r == '\'' || r == '"'):
			quote = r
		case r == quote:
			quote = 0
		case quote == 0 && r == ' ':
			if word.Len() > 0 {
				args = append(args, word.String())
			}
			word.Reset()
		default:
			word.WriteRune(r)
		}
	}
	return args
}

// unknownTo returns the command and the flags among the arguments of berth that its help does not have. help remembers
// what was asked for before.
func unknownTo(t *testing.T, help map[string]string, args []string) (unknown []string) {
	t.Helper()
	command := ""
	if len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		command = args[0]
	}
	if _, asked := help[command]; !asked {
		out, err := exec.CommandContext(t.Context(), filepath.Join(top, "bin", "berth"),
			strings.Fields(command+" --help")...).CombinedOutput()
		if err != nil {
			t.Fatalf("berth %s --help (run make build before): %v\n%s", command, err, out)
		}
		help[command] = string(out)
	}
	if !strings.Contains(help[command], strings.TrimSpace("berth "+command)+" ") {
		return []string{command}
	}
	for _, arg := range args {
		flag, _, _ := strings.Cut(arg, "=")
		if strings.HasPrefix(flag, "--") && !regexp.MustCompile(regexp.QuoteMeta(flag)+`\b`).MatchString(help[command]) {
			unknown = append(unknown, flag)
		}
	}
	return unknown
}

func TestCommandsOfThePagesAreKnown(t *testing.T) {
	t.Parallel()
	makefile, err := os.ReadFile(filepath.Join(top, "Makefile"))
	require.NoError(t, err)
	checked, help := 0, map[string]string{}
	for name, page := range pages(t) {
		for _, command := range commands(page) {
			args := arguments(command)
			if len(args) == 0 {
				continue
			}
			switch program := filepath.Base(args[0]); {
			case program == "make" && len(args) > 1:
				checked++
				if !strings.Contains(string(makefile), "\n"+args[1]+":") {
					t.Errorf("%s: %s: the Makefile has no target %s", name, command, args[1])
				}
			case program == "berth", program == "kubectl-berth":
				checked++
				for _, unknown := range unknownTo(t, help, args[1:]) {
					t.Errorf("%s: %s: berth does not know %s", name, command, unknown)
				}
			}
			for _, arg := range args {
				if strings.HasPrefix(arg, "manifests/") || strings.HasPrefix(arg, "./hack/") || strings.HasPrefix(arg, "hack/") {
					if _, err := os.Stat(filepath.Join(top, arg)); err != nil {
						t.Errorf("%s: %s: %s does not exist", name, command, arg)
					}
				}
			}
		}
	}
	if checked < 20 {
		t.Errorf("only %d commands were found", checked)
	}
}

// paths finds files and folders of the project that pages name from the top, with or without "./". A path after another
// one, such as k8s.io/kubernetes/pkg/kubelet, is not ours.
// A word in capitals, such as PLUGIN, stands for any name.
var (
	paths        = regexp.MustCompile(`(?:^|[^\w./-])(?:\./)?((?:pkg|test|hack)/[\w./*-]*\w\*?)`)
	placeholders = regexp.MustCompile(`\b[A-Z]{2,}\b`)
)

// A page that names a package that has moved leads nowhere.
func TestPathsThatPagesForReadersOfTheCodeNameExist(t *testing.T) {
	t.Parallel()
	checked := 0
	for name, page := range pages(t) {
		if name != "CONTRIBUTING.md" && name != filepath.Join("docs", "architecture.md") &&
			filepath.Dir(name) != filepath.Join("docs", "internals") {
			continue
		}
		for _, path := range paths.FindAllStringSubmatch(page, -1) {
			checked++
			if found, err := filepath.Glob(filepath.Join(top, placeholders.ReplaceAllString(path[1], "*"))); err != nil ||
				len(found) == 0 {
				t.Errorf("%s names %s, which does not exist (%v)", name, path[1], err)
			}
		}
	}
	if checked < 100 {
		t.Errorf("only %d paths were found", checked)
	}
}

func TestCodeOfThePluginPageIsThatOfThePlugin(t *testing.T) {
	t.Parallel()
	var source strings.Builder
	for _, file := range []string{"plugin.go", "score.go"} {
		text, err := os.ReadFile(filepath.Join(top, "pkg/plugins/slaaware", file))
		require.NoError(t, err)
		source.Write(text)
	}
	shown := regexp.MustCompile("(?s)```go\n(.*?)```").FindAllStringSubmatch(
		pages(t)["docs/internals/writing-a-plugin.md"], -1)
	if len(shown) < 3 {
		t.Errorf("%d pieces of code on the page, want 3 or more", len(shown))
	}
	for _, piece := range shown {
		if !strings.Contains(source.String(), piece[1]) {
			t.Errorf("the plugin does not have this code of the page:\n%s", piece[1])
		}
	}
}
