package main

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

const (
	isc = `Copyright (c) 2026 Somebody

Permission to use, copy, modify, and/or distribute this software for any
purpose with or without fee is hereby granted, provided that the above
copyright notice and this permission notice appear in all copies.

THE SOFTWARE IS PROVIDED "AS IS" AND THE AUTHOR DISCLAIMS ALL WARRANTIES WITH
REGARD TO THIS SOFTWARE INCLUDING ALL IMPLIED WARRANTIES OF MERCHANTABILITY AND
FITNESS. IN NO EVENT SHALL THE AUTHOR BE LIABLE FOR ANY SPECIAL, DIRECT,
INDIRECT, OR CONSEQUENTIAL DAMAGES OR ANY DAMAGES WHATSOEVER RESULTING FROM
LOSS OF USE, DATA OR PROFITS, WHETHER IN AN ACTION OF CONTRACT, NEGLIGENCE OR
OTHER TORTIOUS ACTION, ARISING OUT OF OR IN CONNECTION WITH THE USE OR
PERFORMANCE OF THIS SOFTWARE.
`
	unlicense = `This is free and unencumbered software released into the public domain.

Anyone is free to copy, modify, publish, use, compile, sell, or
distribute this software, either in source code form or as a compiled
binary, for any purpose, commercial or non-commercial, and by any
means.

In jurisdictions that recognize copyright laws, the author or authors
of this software dedicate any and all copyright interest in the
software to the public domain. We make this dedication for the benefit
of the public at large and to the detriment of our heirs and
successors. We intend this dedication to be an overt act of
relinquishment in perpetuity of all present and future rights to this
software under copyright law.

THE SOFTWARE IS PROVIDED "AS IS", WITHOUT WARRANTY OF ANY KIND,
EXPRESS OR IMPLIED, INCLUDING BUT NOT LIMITED TO THE WARRANTIES OF
MERCHANTABILITY, FITNESS FOR A PARTICULAR PURPOSE AND NONINFRINGEMENT.
IN NO EVENT SHALL THE AUTHORS BE LIABLE FOR ANY CLAIM, DAMAGES OR
OTHER LIABILITY, WHETHER IN AN ACTION OF CONTRACT, TORT OR OTHERWISE,
ARISING FROM, OUT OF OR IN CONNECTION WITH THE SOFTWARE OR THE USE OR
OTHER DEALINGS IN THE SOFTWARE.

For more information, please refer to <https://unlicense.org>
`
	copyleft = `This program is free software: you can redistribute it and/or modify
it under the terms of the GNU Affero General Public License as published by
the Free Software Foundation, either version 3 of the License, or
(at your option) any later version.

This program is distributed in the hope that it will be useful,
but WITHOUT ANY WARRANTY; without even the implied warranty of
MERCHANTABILITY or FITNESS FOR A PARTICULAR PURPOSE. See the
GNU Affero General Public License for more details.

You should have received a copy of the GNU Affero General Public License
along with this program. If not, see <https://www.gnu.org/licenses/>.
`
)

func TestLicensesAreThoseOfWhatIsLinked(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files    map[string]string
		packages []string
		want     string
		wantErr  string
	}{
		"of the root": {files: map[string]string{"LICENSE": isc}, packages: []string{"a/b"},
			want: "ISC"},
		"of a folder that is linked": {files: map[string]string{"LICENSE.md": isc, "a/COPYING": unlicense},
			packages: []string{"a/b"}, want: "ISC, Unlicense"},
		"of a folder that is not": {files: map[string]string{"License.txt": isc, "c/COPYING": copyleft},
			packages: []string{"a"}, want: "ISC"},
		"of a linked folder, refused": {files: map[string]string{"LICENSE": isc, "a/LICENSE": copyleft},
			packages: []string{"a"}, wantErr: "has the license AGPL-3.0"},
		"of documents": {files: map[string]string{"LICENSE": isc, "LICENSE.docs": copyleft}, want: "ISC"},
		"source code named so": {files: map[string]string{"LICENSE": isc, "license.go": "package license"},
			want: "ISC"},
		"names of authors": {files: map[string]string{"LICENSE": isc, "COPYRIGHT": "Copyright Somebody"},
			want: "ISC"},
		"none":           {files: map[string]string{"README": "free"}, wantErr: "has no license that is known"},
		"an empty one":   {files: map[string]string{"LICENSE": ""}, wantErr: "is not the text of a license"},
		"one of its own": {files: map[string]string{"LICENSE": "Do what you like."}, wantErr: "is not the text of a license"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := module{path: "m", version: "v1", dir: t.TempDir()}
			for _, p := range test.packages {
				m.packages = append(m.packages, filepath.Join(m.dir, p))
				if err := os.MkdirAll(filepath.Join(m.dir, p), 0o700); err != nil {
					t.Fatal(err)
				}
			}
			for name, text := range test.files {
				path := filepath.Join(m.dir, name)
				if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
					t.Fatal(err)
				}
			}
			got, err := m.licenses()
			if test.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), test.wantErr) {
					t.Errorf("error %v, want %q", err, test.wantErr)
				}
				return
			}
			if err != nil || got != test.want {
				t.Errorf("%v, %v, want %v", got, err, test.want)
			}
		})
	}
}

func TestPackagesAreGatheredByTheModuleThatIsReallyUsed(t *testing.T) {
	t.Parallel()
	const list = `{"Dir":"/go/fmt"}
{"Dir":"/own/a","Module":{"Path":"own","Main":true,"Dir":"/own"}}
{"Dir":"/b/x","Module":{"Path":"b","Version":"v2","Dir":"/b"}}
{"Dir":"/new/x","Module":{"Path":"a","Version":"v0","Dir":"/a","Replace":{"Path":"a","Version":"v3","Dir":"/new"}}}
{"Dir":"/b/y","Module":{"Path":"b","Version":"v2","Dir":"/b"}}`
	got, err := readPackages(strings.NewReader(list))
	if err != nil {
		t.Fatal(err)
	}
	if len(got) != 2 || got[0].path != "a" || got[0].version != "v3" || got[0].dir != "/new" ||
		!slices.Equal(got[1].packages, []string{"/b/x", "/b/y"}) {
		t.Errorf("got %+v", got)
	}
	if _, err := readPackages(strings.NewReader("{")); err == nil {
		t.Error("half a list is taken")
	}
	var page bytes.Buffer
	if err := write(map[string][]module{"ISC, MIT": {got[1]}}, &page); err != nil ||
		!strings.Contains(page.String(), "\n## ISC, MIT\n\n```text\nb@v2\n```\n") {
		t.Errorf("%v:\n%s", err, page.String())
	}
}

func TestTextsComeOnceWithTheModulesThatHaveThem(t *testing.T) {
	t.Parallel()
	newModule := func(path string, files map[string]string) module {
		m := module{path: path, version: "v1", dir: t.TempDir()}
		for name, text := range files {
			if err := os.WriteFile(filepath.Join(m.dir, name), []byte(text), 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return m
	}
	modules := []module{
		newModule("a", map[string]string{"LICENSE": isc, "NOTICE": "A is by Ann."}),
		newModule("b", map[string]string{"LICENSE.txt": strings.ReplaceAll(isc, "\n", "\r\n"), "notice.go": "package b"}),
	}
	var page bytes.Buffer
	if err := texts(modules, &page); err != nil {
		t.Fatal(err)
	}
	got := page.String()
	for _, want := range []string{"\na v1\nb v1\n\n" + isc, "\na v1\n\nA is by Ann.\n", "\nstd go",
		"Copyright 2009 The Go Authors"} {
		if !strings.Contains(got, want) {
			t.Errorf("the texts lack %q", want)
		}
	}
	if n := strings.Count(got, "THE AUTHOR DISCLAIMS"); n != 1 || strings.Contains(got, "package b") {
		t.Errorf("the shared license is there %d times, want once:\n%s", n, got)
	}
	if err := texts([]module{newModule("c", nil)}, &page); err == nil ||
		!strings.Contains(err.Error(), "module c v1 has no license") {
		t.Errorf("a module without a license: error %v", err)
	}
}
