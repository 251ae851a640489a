package tool_test

import (
	"go/ast"
	"go/parser"
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

// ruleArgument is where functions take the name of a rule.
var ruleArgument = map[string]int{"find": 1, "findIn": 1, "findAt": 1, "add": 1, "findOf": 0, "warn": 0}

// rulesOfCode collects the names of rules with which findings are made.
func rulesOfCode(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob("../../pkg/validate/*.go")
	require.NoError(t, err)
	rules := map[string]bool{}
	take := func(name ast.Expr) {
		switch name := name.(type) {
		case *ast.BasicLit:
			text, err := strconv.Unquote(name.Value)
			require.NoError(t, err)
			rules[text] = true
		case *ast.Ident: // handed on
		default:
			t.Errorf("a rule is named by a %T", name)
		}
	}
	for _, file := range files {
		if strings.HasSuffix(file, "_test.go") {
			continue
		}
		parsed, err := parser.ParseFile(token.NewFileSet(), file, nil, 0)
		require.NoError(t, err)
		ast.Inspect(parsed, func(n ast.Node) bool {
			switch n := n.(type) {
			case *ast.CallExpr:
				if method, ok := n.Fun.(*ast.SelectorExpr); ok {
					if at, takes := ruleArgument[method.Sel.Name]; takes && len(n.Args) > at+1 {
						take(n.Args[at])
					}
				}
			case *ast.KeyValueExpr:
				if key, ok := n.Key.(*ast.Ident); ok && key.Name == "Rule" {
					take(n.Value)
				}
			}
			return true
		})
	}
	return slices.Sorted(maps.Keys(rules))
}

func TestEachRuleIsInTheTableOfThePage(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/tool.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "\n| rules | findings |\n")
	if !found {
		t.Fatal("the page has no table of rules")
	}
	table, _, _ = strings.Cut(table, "\n\n")
	var listed []string
	for _, row := range regexp.MustCompile(`(?m)^\| (.*?) \|`).FindAllStringSubmatch(table, -1) {
		for _, rule := range regexp.MustCompile("`([a-z-]+)`").FindAllStringSubmatch(row[1], -1) {
			listed = append(listed, rule[1])
		}
	}
	slices.Sort(listed)
	if diff := cmp.Diff(rulesOfCode(t), listed); diff != "" {
		t.Errorf("rules (-code +page):\n%s", diff)
	}
}
