package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// metric is what the sources say of one.
type metric struct {
	name, kind, help string
	labels           []string
	folder           string
}

// makers are the functions that make metrics, by the type of what they make. They are those of component-base and of
// Prometheus' client.
var makers = map[string]string{
	"NewCounter": "counter", "NewCounterVec": "counter",
	"NewGauge": "gauge", "NewGaugeVec": "gauge",
	"NewHistogram": "histogram", "NewHistogramVec": "histogram",
	"NewDesc": "",
}

// source is one package.
type source struct {
	files *token.FileSet
	// values are the constants and variables of the package that have a value in the text.
	values map[string]ast.Expr
}

func readPackage(folder string) ([]metric, error) {
	s := source{files: token.NewFileSet(), values: map[string]ast.Expr{}}
	entries, err := os.ReadDir(folder)
	if err != nil {
		return nil, err
	}
	var files []*ast.File
	for _, entry := range entries {
		if !strings.HasSuffix(entry.Name(), ".go") || strings.HasSuffix(entry.Name(), "_test.go") {
			continue
		}
		file, err := parser.ParseFile(s.files, filepath.Join(folder, entry.Name()), nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
		s.declare(file)
	}
	var found []metric
	for _, file := range files {
		ast.Inspect(file, func(n ast.Node) bool {
			if call, ok := n.(*ast.CallExpr); ok && err == nil {
				var m metric
				if m, err = s.metric(call); err == nil && m.name != "" {
					found = append(found, m)
				}
			}
			return err == nil
		})
	}
	return found, err
}

func (s source) declare(file *ast.File) {
	for _, decl := range file.Decls {
		general, ok := decl.(*ast.GenDecl)
		if !ok {
			continue
		}
		for _, spec := range general.Specs {
			values, ok := spec.(*ast.ValueSpec)
			if !ok || len(values.Values) != len(values.Names) {
				continue
			}
			for i, name := range values.Names {
				s.values[name.Name] = values.Values[i]
			}
		}
	}
}

// metric reads a call that makes a metric. A metric without a name is none.
func (s source) metric(call *ast.CallExpr) (metric, error) {
	function, ok := call.Fun.(*ast.SelectorExpr)
	if !ok {
		return metric{}, nil
	}
	kind, ok := makers[function.Sel.Name]
	if pkg, isName := function.X.(*ast.Ident); !ok || !isName ||
		!slices.Contains([]string{"metrics", "prometheus"}, pkg.Name) {
		return metric{}, nil
	}
	m := metric{kind: kind}
	var err error
	if function.Sel.Name == "NewDesc" {
		if len(call.Args) < 3 {
			return m, s.failure(call, "a description of a metric has a name, a help and labels")
		}
		if m.name, err = s.text(call.Args[0]); err != nil {
			return m, err
		}
		if m.help, err = s.text(call.Args[1]); err != nil {
			return m, err
		}
		m.labels, err = s.texts(call.Args[2])
		// What a collector makes of a description is told by its name alone.
		if m.kind = "gauge"; strings.HasSuffix(m.name, "_total") {
			m.kind = "counter"
		}
		return m, err
	}
	if err := s.options(call.Args[0], &m); err != nil {
		return m, err
	}
	if strings.HasSuffix(function.Sel.Name, "Vec") {
		m.labels, err = s.texts(call.Args[1])
	}
	return m, err
}

// options reads the name and the help of the options that a metric is made with.
func (s source) options(arg ast.Expr, m *metric) error {
	if address, ok := arg.(*ast.UnaryExpr); ok {
		arg = address.X
	}
	literal, ok := arg.(*ast.CompositeLit)
	if !ok {
		return s.failure(arg, "the options of a metric have to be written where it is made")
	}
	var parts [3]string // namespace, subsystem, name
	for _, element := range literal.Elts {
		field, ok := element.(*ast.KeyValueExpr)
		if !ok {
			return s.failure(element, "the options of a metric need names of fields")
		}
		key, ok := field.Key.(*ast.Ident)
		if !ok {
			continue
		}
		var into *string
		switch key.Name {
		case "Namespace":
			into = &parts[0]
		case "Subsystem":
			into = &parts[1]
		case "Name":
			into = &parts[2]
		case "Help":
			into = &m.help
		default:
			continue
		}
		var err error
		if *into, err = s.text(field.Value); err != nil {
			return err
		}
	}
	m.name = strings.Trim(strings.Join(parts[:], "_"), "_")
	return nil
}

func (s source) text(value ast.Expr) (string, error) {
	switch v := value.(type) {
	case *ast.BasicLit:
		if v.Kind == token.STRING {
			return strconv.Unquote(v.Value)
		}
	case *ast.BinaryExpr:
		left, err := s.text(v.X)
		if err != nil {
			return "", err
		}
		right, err := s.text(v.Y)
		return left + right, err
	case *ast.Ident:
		if declared, ok := s.values[v.Name]; ok {
			return s.text(declared)
		}
	}
	return "", s.failure(value, "a metric's name, help and labels have to be texts or constants of the package")
}

func (s source) texts(value ast.Expr) ([]string, error) {
	switch v := value.(type) {
	case *ast.Ident:
		if v.Name == "nil" {
			return nil, nil
		}
		if declared, ok := s.values[v.Name]; ok {
			return s.texts(declared)
		}
	case *ast.CompositeLit:
		var all []string
		for _, element := range v.Elts {
			text, err := s.text(element)
			if err != nil {
				return nil, err
			}
			all = append(all, text)
		}
		return all, nil
	}
	return nil, s.failure(value, "a metric's labels have to be a list of texts or a variable of the package")
}

func (s source) failure(at ast.Node, what string) error {
	return fmt.Errorf("%s: %s", s.files.Position(at.Pos()), what)
}
