package docs_test

import (
	"flag"
	"go/ast"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/test/harness/require"
)

var update = flag.Bool("update", false, "write testdata/messages.txt again")

var words = regexp.MustCompile(`\pL{2,}.* .*\pL{2,}`)

// The messages of events, conditions, errors and commands are one list by package, so that they can be read in one go
// and a change shows beside the others of its package. Log lines and the help of commands are left out.
func TestMessages(t *testing.T) {
	t.Parallel()
	byPackage := map[string]map[string]bool{}
	sources(t, []string{"cmd", "pkg"}, func(files *token.FileSet, file *ast.File) {
		path, err := filepath.Rel(top, files.Position(file.Pos()).Filename)
		require.NoError(t, err)
		// The texts of inputs/fields.go are names of fields.
		if strings.HasSuffix(path, "_test.go") || strings.HasSuffix(path, filepath.FromSlash("inputs/fields.go")) {
			return
		}
		folder := filepath.ToSlash(filepath.Dir(path))
		if byPackage[folder] == nil {
			byPackage[folder] = map[string]bool{}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.ImportSpec:
				return false
			case *ast.Field:
				return n.Tag == nil
			case *ast.KeyValueExpr:
				key, is := n.Key.(*ast.Ident)
				return !is || key.Name != "Long" && key.Name != "Example" && key.Name != "Help"
			case *ast.CallExpr:
				return !logs(n)
			case *ast.BinaryExpr, *ast.BasicLit:
				text := literal(n.(ast.Expr))
				if words.MatchString(text) {
					byPackage[folder][text] = true
				}
				return text == ""
			}
			return true
		})
	})
	var list strings.Builder
	for _, folder := range slices.Sorted(maps.Keys(byPackage)) {
		if len(byPackage[folder]) == 0 {
			continue
		}
		list.WriteString("\n" + folder + "\n")
		for _, text := range slices.Sorted(maps.Keys(byPackage[folder])) {
			quoted := strconv.Quote(text)
			list.WriteString("  " + quoted[1:len(quoted)-1] + "\n")
		}
	}
	golden := filepath.Join("testdata", "messages.txt")
	if *update {
		require.NoError(t, os.WriteFile(golden, []byte(list.String()), 0o600))
	}
	want, err := os.ReadFile(golden)
	require.NoError(t, err)
	if diff := cmp.Diff(string(want), list.String()); diff != "" {
		t.Errorf("the messages are not those of the list; read the difference, then run "+
			"go test ./docs -run Messages -update (-want +got):\n%s", diff)
	}
}

// logs reports whether the call writes to the log or ends the process for a fault of the code.
func logs(call *ast.CallExpr) bool {
	switch called := call.Fun.(type) {
	case *ast.Ident:
		return called.Name == "panic"
	case *ast.SelectorExpr:
		switch called.Sel.Name {
		case "Info", "InfoS", "ErrorS":
			return true
		case "Error":
			return len(call.Args) > 1
		}
	}
	return false
}

// literal returns the text of a string literal or of several that are added, empty if there is something else in it.
func literal(e ast.Expr) string {
	switch e := e.(type) {
	case *ast.BasicLit:
		if text, err := strconv.Unquote(e.Value); err == nil && e.Kind == token.STRING {
			return text
		}
	case *ast.BinaryExpr:
		left, right := literal(e.X), literal(e.Y)
		if e.Op == token.ADD && left != "" && right != "" {
			return left + right
		}
	}
	return ""
}
