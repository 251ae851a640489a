package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"berth.dev/berth/manifests"
)

const top = "../.."

func TestTheDrawingsAreThoseOfTheProgram(t *testing.T) {
	t.Parallel()
	for file, want := range map[string]string{"parts.svg": parts(), "profiles.svg": profiles(),
		"gang-rooms.svg": rooms()} {
		got, err := os.ReadFile(filepath.Join(top, folder, file))
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(want, string(got)); diff != "" {
			t.Errorf("%s is old; run make pictures PICTURES=\"parts profiles rooms\" (-want +got):\n%s", file, diff)
		}
	}
}

// Every picture is small enough, and on a page.
func TestThePicturesAreOnPages(t *testing.T) {
	t.Parallel()
	var pages bytes.Buffer
	for _, pattern := range []string{"*.md", "docs/*.md", "docs/internals/*.md"} {
		paths, err := filepath.Glob(filepath.Join(top, pattern))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range paths {
			page, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			pages.Write(page)
		}
	}
	files, err := os.ReadDir(filepath.Join(top, folder))
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range files {
		if !regexp.MustCompile(`!\[[^]]+\]\([^)]*images/` + regexp.QuoteMeta(file.Name()) + `\)`).Match(pages.Bytes()) {
			t.Errorf("no page shows %s with words for those who do not see it", file.Name())
		}
		info, err := file.Info()
		if err != nil {
			t.Fatal(err)
		}
		if info.Size() > largest {
			t.Errorf("%s has %d bytes, more than %d", file.Name(), info.Size(), largest)
		}
	}
	if len(files) != 7 {
		t.Errorf("there are %d pictures", len(files))
	}
}

// The tree leads to each shipped profile.
func TestTheTreeHasEveryProfile(t *testing.T) {
	t.Parallel()
	names := regexp.MustCompile(`schedulerName: (\S+)`)
	tree, found := profiles(), 0
	for _, file := range []string{"base/scheduler-config.yaml", "replace-default/scheduler-config.yaml"} {
		data, err := manifests.Files.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range names.FindAllStringSubmatch(string(data), -1) {
			found++
			if !strings.Contains(tree, ">"+name[1]+"<") {
				t.Errorf("%s of %s is not in the tree", name[1], file)
			}
		}
	}
	if found < 6 {
		t.Errorf("%d profiles found", found)
	}
}

// run is a recording of two members that started after a node was kept for them.
func testRun() *recording {
	return &recording{
		pods: map[string]*podRun{
			"job-0":   {Name: "job-0", Node: "node-0", Bound: -0.5, Ended: 6},
			"job-1":   {Name: "job-1", Node: "node-1", Bound: -0.5, Ended: 9},
			"gang-0":  {Name: "gang-0", Node: "node-0", Bound: 9.2, Ended: -1},
			"gang-1":  {Name: "gang-1", Node: "node-1", Bound: 9.2035, Ended: -1},
			"later-0": {Name: "later-0", Bound: -1, Ended: -1},
		},
		notes: []note{
			{0.1, gangName, "needs 2 < 3 nodes"}, {7, gangName, "2 nodes reserved, on which the gang fits"},
			{4, "later-0", "0/2 nodes are available: 1 kept for gang default/gang. preemption: no"},
		},
	}
}

func TestTheTimeLineOfAGang(t *testing.T) {
	t.Parallel()
	drawn := drawGang(testRun())
	for _, want := range []string{
		"plan, 0.1 s", "needs 2 &lt; 3 nodes", "reserve, 4 s", "2 nodes reserved",
		"bind, 9.2 s", "2 of 4 members within 4 ms",
		"A small job that waits: 0/2 nodes are available: 1 kept for gang default/gang<", "node-0: kept for the gang",
	} {
		if !strings.Contains(drawn, want) {
			t.Errorf("%q is missing in\n%s", want, drawn)
		}
	}
	if n := strings.Count(drawn, ": kept for the gang"); n != 2 {
		t.Errorf("%d nodes are kept, want 2", n)
	}
}

// What browsers would refuse or cut off: elements that do not close, and texts that end beyond the picture.
func TestDrawingsAreWhole(t *testing.T) {
	t.Parallel()
	const letterWidth = 6.0 // about
	for name, drawn := range map[string]string{
		"parts": parts(), "profiles": profiles(), "rooms": rooms(), "gang": drawGang(testRun()),
	} {
		decoder, attribute, width := xml.NewDecoder(strings.NewReader(drawn)), map[string]string{}, 0.0
		for {
			token, err := decoder.Token()
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				t.Fatalf("%s: %v", name, err)
			}
			switch token := token.(type) {
			case xml.StartElement:
				attribute = map[string]string{"element": token.Name.Local}
				for _, a := range token.Attr {
					attribute[a.Name.Local] = a.Value
				}
				if token.Name.Local == "svg" {
					if _, err := fmt.Sscanf(attribute["viewBox"], "-8 -8 %g", &width); err != nil {
						t.Fatal(err)
					}
				}
			case xml.CharData:
				x, err := strconv.ParseFloat(attribute["x"], 64)
				if attribute["element"] != "text" || err != nil {
					continue
				}
				long := letterWidth * float64(len(token))
				from := x - map[string]float64{"end": long, "middle": long / 2}[attribute["text-anchor"]]
				if from < -8 || from+long > width {
					t.Errorf("%s: %q reaches from %.0f to %.0f", name, token, from, from+long)
				}
			case xml.EndElement:
				attribute = map[string]string{}
			}
		}
		if width < 900 {
			t.Errorf("%s: the picture is %g wide", name, width)
		}
	}
}

func TestAnUnknownPictureIsRefused(t *testing.T) {
	t.Parallel()
	want := `picture "part": must be one of compare, dashboard, gang, parts, profiles, rooms`
	if err := run(t.Context(), []string{"part"}); err == nil || err.Error() != want {
		t.Errorf("got error %v, want %s", err, want)
	}
}
