package plugins_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// module is what the paths of our own packages begin with.
const module = "berth.dev/berth/"

// linked are the folders of our own packages in the scheduler: the command and all that it imports.
func linked(t *testing.T) []string {
	t.Helper()
	const root = "cmd/scheduler"
	seen, next := map[string]bool{root: true}, []string{root}
	for len(next) > 0 {
		dir := next[0]
		next = next[1:]
		for _, file := range parsed(t, dir, parser.ImportsOnly) {
			for _, spec := range file.Imports {
				if path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), module); ours && !seen[path] {
					seen[path] = true
					next = append(next, path)
				}
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// parsed are the files of a package without its tests.
func parsed(t *testing.T, dir string, mode parser.Mode) []*ast.File {
	t.Helper()
	paths, err := filepath.Glob(filepath.Join("..", "..", dir, "*.go"))
	if err != nil || len(paths) == 0 {
		t.Fatalf("package %s has no files, %v", dir, err)
	}
	var files []*ast.File
	for _, path := range paths {
		if strings.HasSuffix(path, "_test.go") || filepath.Base(path) == "zz_generated.deepcopy.go" {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, mode|parser.SkipObjectResolution)
		if err != nil {
			t.Fatal(err)
		}
		files = append(files, file)
	}
	return files
}

// mapsOf are the fields of types and the variables of a package that hold maps or caches.
func mapsOf(t *testing.T, dir string) []string {
	t.Helper()
	files := parsed(t, dir, 0)
	// named are the types of the package that are maps or lists of maps.
	named := map[string]bool{}
	for _, file := range files {
		for _, decl := range file.Decls {
			gen, ok := decl.(*ast.GenDecl)
			if !ok {
				continue
			}
			for _, spec := range gen.Specs {
				if of, ok := spec.(*ast.TypeSpec); ok {
					if _, isStruct := of.Type.(*ast.StructType); !isStruct && grows(of.Type, nil) {
						named[of.Name.Name] = true
					}
				}
			}
		}
	}
	var found []string
	for _, file := range files {
		for _, decl := range file.Decls {
			if gen, ok := decl.(*ast.GenDecl); ok && gen.Tok == token.VAR {
				for _, spec := range gen.Specs {
					found = append(found, variables(spec.(*ast.ValueSpec), named)...)
				}
			}
		}
		ast.Inspect(file, func(n ast.Node) bool {
			spec, ok := n.(*ast.TypeSpec)
			if !ok {
				return true
			}
			if of, ok := spec.Type.(*ast.StructType); ok {
				for _, field := range of.Fields.List {
					for _, name := range field.Names {
						if grows(field.Type, named) {
							found = append(found, spec.Name.Name+"."+name.Name)
						}
					}
				}
			}
			return true
		})
	}
	return found
}

// variables are those of a declaration that hold maps or caches. What a function makes is seen by what it is declared
// as only.
func variables(spec *ast.ValueSpec, named map[string]bool) []string {
	var found []string
	for i, name := range spec.Names {
		switch {
		case spec.Type != nil && grows(spec.Type, named):
			found = append(found, name.Name)
		case spec.Type == nil && i < len(spec.Values):
			if of, ok := spec.Values[i].(*ast.CompositeLit); ok && of.Type != nil && grows(of.Type, named) {
				found = append(found, name.Name)
			}
			if of, ok := spec.Values[i].(*ast.CallExpr); ok && len(of.Args) > 0 {
				if making, ok := of.Fun.(*ast.Ident); ok && making.Name == "make" && grows(of.Args[0], named) {
					found = append(found, name.Name)
				}
			}
		}
	}
	return found
}

// grows reports whether the type holds a map or a cache.
func grows(of ast.Expr, named map[string]bool) bool {
	found := false
	ast.Inspect(of, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.MapType:
			found = true
		case *ast.FuncType:
			return false
		case *ast.Ident:
			found = found || named[n.Name]
		case *ast.SelectorExpr:
			pkg, ok := n.X.(*ast.Ident)
			found = found || ok && (pkg.Name == "sync" && n.Sel.Name == "Map" || pkg.Name == "lru" && n.Sel.Name == "Cache" ||
				pkg.Name == "sets" && n.Sel.Name == "Set")
			return false
		}
		return true
	})
	return found
}
