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
)

// phrases returns one expression for all lines of hack/phrases.txt. A space in a phrase stands for a line break, too.
func phrases(t *testing.T) *regexp.Regexp {
	t.Helper()
	data, err := os.ReadFile(filepath.Join(top, "hack", "phrases.txt"))
	if err != nil {
		t.Fatal(err)
	}
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

// The texts are the string literals: help and messages. Comments and tests are left out.
func TestHelpAndMessagesUsePlainWords(t *testing.T) {
	t.Parallel()
	avoided, texts := phrases(t), 0
	for _, folder := range []string{"cmd", "pkg"} {
		err := filepath.WalkDir(filepath.Join(top, folder), func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() || filepath.Ext(path) != ".go" || strings.HasSuffix(path, "_test.go") {
				return err
			}
			files := token.NewFileSet()
			file, err := parser.ParseFile(files, path, nil, parser.SkipObjectResolution)
			if err != nil {
				return err
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
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if texts < 1000 {
		t.Errorf("%d texts found, want 1,000 or more", texts)
	}
}
