// Command site makes a website of the project's pages: plain files that can be read from a disk, with a search that
// needs no server.
//
//	go run -C hack/tools/site . --output ../../../site
package main

import (
	"bytes"
	_ "embed" // for the parts of a page
	"encoding/json"
	"flag"
	"fmt"
	"html/template"
	"io/fs"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

//go:embed page.html
var pageSource string

//go:embed style.css
var style []byte

//go:embed search.js
var script []byte

// sources are the folders with pages, in the order of the menu, and what the menu calls them.
var sources = []struct{ title, pattern string }{
	{"", "README.md"},
	{"For users", "docs/*.md"},
	{"Examples", "manifests/examples/*/README.md"},
	{"Internals", "docs/internals/*.md"},
	{"Project", "*.md"},
}

// section is a part of the menu.
type section struct {
	Title string
	Pages []*page
}

func main() {
	root := flag.String("root", "../../..", "the project's folder")
	output := flag.String("output", "../../../site", "where the site goes; the folder is replaced")
	flag.Parse()
	pages, err := build(*root, *output)
	if err != nil {
		fmt.Fprintln(os.Stderr, "site:", err)
		os.Exit(1)
	}
	fmt.Printf("%d pages in %s; open %s\n", pages, *output, filepath.Join(*output, "index.html"))
}

// build writes the site and returns how many pages it has.
func build(root, output string) (int, error) {
	menu, all, err := readAll(root)
	if err != nil {
		return 0, err
	}
	if err := os.RemoveAll(output); err != nil {
		return 0, fmt.Errorf("removing the old site: %w", err)
	}
	files := map[string]bool{}
	for _, p := range all {
		if err := p.render(root, all, files); err != nil {
			return 0, err
		}
	}
	layout, err := template.New("page").Parse(pageSource)
	if err != nil {
		return 0, fmt.Errorf("reading the layout: %w", err)
	}
	for _, p := range all {
		var b bytes.Buffer
		if err := layout.Execute(&b, view{page: p, Root: p.toRoot(), Menu: menu}); err != nil {
			return 0, fmt.Errorf("laying out %s: %w", p.source, err)
		}
		if err := write(output, p.target, b.Bytes()); err != nil {
			return 0, err
		}
	}
	for path := range files {
		data, err := os.ReadFile(filepath.Join(root, path))
		if err != nil {
			return 0, fmt.Errorf("reading a file that a page links to: %w", err)
		}
		if err := write(output, path, data); err != nil {
			return 0, err
		}
	}
	index, err := searchIndex(all)
	if err != nil {
		return 0, err
	}
	for name, data := range map[string][]byte{"style.css": style, "search.js": script, "index.js": index} {
		if err := write(output, name, data); err != nil {
			return 0, err
		}
	}
	return len(all), nil
}

// view is what the layout shows.
type view struct {
	*page
	// Root leads from the page to the site's folder.
	Root string
	Menu []section
}

// Link leads from the page to another one of the menu.
func (v view) Link(to *page) string { return v.Root + to.target }

// Here says whether a page of the menu is this one.
func (v view) Here(of *page) bool { return of == v.page }

func readAll(root string) (menu []section, all map[string]*page, err error) {
	all = map[string]*page{}
	for _, source := range sources {
		paths, err := fs.Glob(os.DirFS(root), source.pattern)
		if err != nil {
			return nil, nil, fmt.Errorf("finding pages: %w", err)
		}
		part := section{Title: source.title}
		for _, path := range paths {
			if all[path] != nil {
				continue
			}
			p, err := readPage(root, path)
			if err != nil {
				return nil, nil, err
			}
			all[path] = p
			part.Pages = append(part.Pages, p)
		}
		slices.SortStableFunc(part.Pages, func(x, y *page) int { return strings.Compare(x.source, y.source) })
		menu = append(menu, part)
	}
	if len(all) < 2 {
		return nil, nil, fmt.Errorf("there are no pages in %s", root)
	}
	return menu, all, nil
}

func write(output, path string, data []byte) error {
	target := filepath.Join(output, filepath.FromSlash(path))
	if err := os.MkdirAll(filepath.Dir(target), 0o755); err != nil {
		return fmt.Errorf("making a folder of the site: %w", err)
	}
	if err := os.WriteFile(target, data, 0o644); err != nil { //nolint:gosec // the site is public
		return fmt.Errorf("writing the site: %w", err)
	}
	return nil
}

// searchIndex is a script, because a page that is read from a disk may not fetch data.
func searchIndex(all map[string]*page) ([]byte, error) {
	type entry struct {
		Title string `json:"title"`
		Link  string `json:"link"`
		Text  string `json:"text"`
	}
	var entries []entry
	for _, p := range all {
		for _, part := range p.parts {
			link := p.target
			if part.anchor != "" {
				link += "#" + url.PathEscape(part.anchor)
			}
			title := p.Title
			if part.title != p.Title {
				title += ": " + part.title
			}
			entries = append(entries, entry{title, link, part.text})
		}
	}
	slices.SortFunc(entries, func(x, y entry) int { return strings.Compare(x.Link, y.Link) })
	data, err := json.Marshal(entries)
	if err != nil {
		return nil, fmt.Errorf("encoding the index: %w", err)
	}
	return append([]byte("const pages = "), append(data, ";\n"...)...), nil
}
