package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// The site of the project: every link leads to a file of the site, and every anchor to a heading.
func TestTheSiteOfTheProject(t *testing.T) {
	t.Parallel()
	site := t.TempDir()
	pages, err := build("../../..", site)
	if err != nil {
		t.Fatal(err)
	}
	seen := 0
	links, ids := regexp.MustCompile(`(?:href|src)="([^"]+)"`), regexp.MustCompile(` id="([^"]+)"`)
	anchors := func(file string) string {
		data, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var all []string
		for _, id := range ids.FindAllStringSubmatch(string(data), -1) {
			all = append(all, id[1])
		}
		return "\n" + strings.Join(all, "\n") + "\n"
	}
	err = filepath.WalkDir(site, func(path string, _ os.DirEntry, err error) error {
		if err != nil || filepath.Ext(path) != ".html" {
			return err
		}
		seen++
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		for _, link := range links.FindAllStringSubmatch(string(data), -1) {
			if strings.Contains(link[1], "://") || strings.HasPrefix(link[1], "mailto:") {
				continue
			}
			file, anchor, _ := strings.Cut(link[1], "#")
			target := path
			if file != "" {
				target = filepath.Join(filepath.Dir(path), file)
			}
			if _, err := os.Stat(target); err != nil {
				t.Errorf("%s links to %s: %v", path, link[1], err)
			} else if anchor != "" && !strings.Contains(anchors(target), "\n"+anchor+"\n") {
				t.Errorf("%s links to %s, which has no such heading", path, link[1])
			}
		}
		return nil
	})
	if err != nil || seen != pages || seen < 40 {
		t.Errorf("%d files for %d pages (%v)", seen, pages, err)
	}
	index, err := os.ReadFile(filepath.Join(site, "index.js"))
	if err != nil || !strings.Contains(string(index), `"link":"docs/gangs.html#`) {
		t.Errorf("the index does not lead to a heading of the page on gangs (%v)", err)
	}
}

func TestALinkThatLeadsNowhereIsAnError(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	for name, text := range map[string]string{"README.md": "# A\n\n[b](docs/b.md)\n",
		"docs/b.md": "# B\n\n[gone](../c.md)\n"} {
		if err := write(root, name, []byte(text)); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := build(root, filepath.Join(root, "site")); err == nil ||
		!strings.Contains(err.Error(), "docs/b.md links to ../c.md") {
		t.Errorf("the error is %v", err)
	}
}
