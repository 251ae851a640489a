package docs_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/require"
)

// phrases returns one expression for all lines of hack/phrases.txt. A space in a phrase stands for a line break, too.
func phrases(t *testing.T) *regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, "hack", "phrases.txt"))
	require.NoError(t, err)
	var found []string
	for line := range strings.Lines(string(data)) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "#") {
			found = append(found, strings.Join(strings.Fields(regexp.QuoteMeta(line)), `\s+`))
		}
	}
	if len(found) < 10 {
		t.Fatalf("%d phrases found, want 10 or more", len(found))
	}
	return regexp.MustCompile(`(?i)\b(?:` + strings.Join(found, "|") + `)\b`)
}

var code = regexp.MustCompile("(?m)^    .*$|`[^`]*`")

func TestThePagesUsePlainWords(t *testing.T) {
	t.Parallel()
	avoided := phrases(t)
	for name, page := range pages(t) {
		for _, found := range avoided.FindAllString(code.ReplaceAllString(fences.ReplaceAllString(page, ""), ""), -1) {
			t.Errorf("%s: %q is in hack/phrases.txt", name, found)
		}
	}
}

// sources calls check with each Go file below the folders, from the top, that is written by hand.
func sources(t *testing.T, folders []string, check func(files *token.FileSet, file *ast.File)) {
	t.Helper()
	for _, folder := range folders {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution|parser.ParseComments)
			if err != nil || ast.IsGenerated(file) {
				return err
			}
			check(files, file)
			return nil
		})
		require.NoError(t, err)
	}
}

// The texts are the string literals: help and messages. Those of tests are left out.
func TestHelpAndMessagesUsePlainWords(t *testing.T) {
	t.Parallel()
	avoided, texts := phrases(t), 0
	sources(t, []string{"cmd", "pkg"}, func(files *token.FileSet, file *ast.File) {
		if strings.HasSuffix(files.Position(file.Pos()).Filename, "_test.go") {
			return
		}
		ast.Inspect(file, func(n ast.Node) bool {
			literal, is := n.(*ast.BasicLit)
			if !is || literal.Kind != token.STRING {
				return true
			}
			text, err := strconv.Unquote(literal.Value)
			if err != nil {
				t.Errorf("%s: %v", files.Position(literal.Pos()), err)
			}
			texts++
			for _, found := range avoided.FindAllString(text, -1) {
				t.Errorf("%s: %q is in hack/phrases.txt", files.Position(literal.Pos()), found)
			}
			return true
		})
	})
	if texts < 1000 {
		t.Errorf("%d texts found, want 1,000 or more", texts)
	}
}

func TestCommentsUsePlainWords(t *testing.T) {
	t.Parallel()
	avoided, comments := phrases(t), 0
	sources(t, []string{"charts", "cmd", "docs", "hack", "manifests", "pkg", "test"},
		func(files *token.FileSet, file *ast.File) {
			for _, group := range file.Comments {
				var text strings.Builder
				for _, line := range group.List {
					comments++
					text.WriteString(strings.TrimPrefix(line.Text, "//") + "\n")
				}
				for _, found := range avoided.FindAllString(text.String(), -1) {
					t.Errorf("%s: %q is in hack/phrases.txt", files.Position(group.Pos()), found)
				}
			}
		})
	if comments < 10_000 {
		t.Errorf("%d lines of comments found, want 10,000 or more", comments)
	}
}
