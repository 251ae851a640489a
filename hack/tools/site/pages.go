package main

import (
	"bytes"
	"fmt"
	"html/template"
	"os"
	"path"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/renderer/html"
	"github.com/yuin/goldmark/text"
)

// page is a page of the site.
type page struct {
	Title string
	Body  template.HTML
	// source is its path in the project, target that in the site.
	source, target string
	text           []byte
	// parts are what the search finds: the page by its headings.
	parts []part
}

type part struct{ title, anchor, text string }

var markdown = goldmark.New(
	goldmark.WithExtensions(extension.GFM),
	goldmark.WithParserOptions(parser.WithAutoHeadingID()),
	goldmark.WithRendererOptions(html.WithUnsafe()), // the pages are our own
)

func readPage(root, source string) (*page, error) {
	data, err := os.ReadFile(filepath.Join(root, source))
	if err != nil {
		return nil, fmt.Errorf("reading a page: %w", err)
	}
	target := strings.TrimSuffix(source, ".md") + ".html"
	if path.Base(source) == "README.md" {
		target = path.Join(path.Dir(source), "index.html")
	}
	title, _, _ := strings.Cut(strings.TrimPrefix(string(data), "# "), "\n")
	return &page{Title: title, source: source, target: target, text: data}, nil
}

// toRoot leads from the page to the site's folder.
func (p *page) toRoot() string { return strings.Repeat("../", strings.Count(p.target, "/")) }

// render makes the page's body. It notes the files of the project that the page links to, and fails for a link that
// leads nowhere.
func (p *page) render(root string, all map[string]*page, files map[string]bool) error {
	context := parser.NewContext(parser.WithIDs(githubIDs{}))
	document := markdown.Parser().Parse(text.NewReader(p.text), parser.WithContext(context))
	err := ast.Walk(document, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		var err error
		switch n := n.(type) {
		case *ast.Link:
			n.Destination, err = p.link(root, string(n.Destination), all, files)
		case *ast.Image:
			n.Destination, err = p.link(root, string(n.Destination), all, files)
		}
		return ast.WalkContinue, err
	})
	if err != nil {
		return err
	}
	p.split(document)
	var b bytes.Buffer
	if err := markdown.Renderer().Render(&b, p.text, document); err != nil {
		return fmt.Errorf("rendering %s: %w", p.source, err)
	}
	p.Body = template.HTML(b.String()) //nolint:gosec // the pages are our own
	return nil
}

// link turns a link to a page of the project into one to a page of the site.
func (p *page) link(root, to string, all map[string]*page, files map[string]bool) ([]byte, error) {
	if strings.Contains(to, "://") || strings.HasPrefix(to, "#") {
		return []byte(to), nil
	}
	file, anchor, _ := strings.Cut(to, "#")
	source := path.Join(path.Dir(p.source), file)
	if anchor != "" {
		anchor = "#" + anchor
	}
	other := all[source]
	if other == nil {
		other = all[path.Join(source, "README.md")] // a folder
	}
	if other != nil {
		return []byte(p.toRoot() + other.target + anchor), nil
	}
	info, err := os.Stat(filepath.Join(root, source))
	switch {
	case err != nil:
		return nil, fmt.Errorf("%s links to %s: %w", p.source, to, err)
	case !info.IsDir():
		files[source] = true
		return []byte(p.toRoot() + source), nil
	}
	// A folder without a page: its files are only in the project.
	return []byte(p.toRoot() + "index.html"), nil
}

// split divides the page by its headings for the search.
func (p *page) split(document ast.Node) {
	current := part{title: p.Title}
	for n := document.FirstChild(); n != nil; n = n.NextSibling() {
		if heading, ok := n.(*ast.Heading); ok {
			if strings.TrimSpace(current.text) != "" {
				p.parts = append(p.parts, current)
			}
			id, _ := heading.AttributeString("id")
			anchor, _ := id.([]byte)
			current = part{title: string(heading.Lines().Value(p.text)), anchor: string(anchor)}
			continue
		}
		current.text += " " + p.words(n)
	}
	p.parts = append(p.parts, current)
}

// words are the text of a node without its marks.
func (p *page) words(n ast.Node) string {
	var b strings.Builder
	_ = ast.Walk(n, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if !entering {
			return ast.WalkContinue, nil
		}
		switch n := n.(type) {
		case *ast.Text:
			b.Write(n.Segment.Value(p.text))
			b.WriteByte(' ')
		case *ast.CodeBlock, *ast.FencedCodeBlock:
			b.Write(n.Lines().Value(p.text))
		}
		return ast.WalkContinue, nil
	})
	return strings.Join(strings.Fields(b.String()), " ")
}

// githubIDs name headings as GitHub does, so that links work in both places.
type githubIDs struct{}

// Generate is part of parser.IDs.
func (githubIDs) Generate(value []byte, _ ast.NodeKind) []byte {
	return []byte(strings.Map(func(r rune) rune {
		switch {
		case r == ' ':
			return '-'
		case unicode.IsLetter(r), unicode.IsDigit(r), r == '-', r == '_':
			return unicode.ToLower(r)
		default:
			return -1
		}
	}, string(value)))
}

// Put is part of parser.IDs.
func (githubIDs) Put([]byte) {}
