package svg

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
)

func plain(v float64) string { return fmt.Sprint(v) }

func TestAxes(t *testing.T) {
	t.Parallel()
	if got := (&Axis{Min: 10, Max: 30}).part(15); math.Abs(got-0.25) > 1e-9 {
		t.Errorf("15 lies at %v between 10 and 30, want a quarter", got)
	}
	for v, want := range map[float64]float64{0: 1, 43: 50, 7.9: 8, 100: 100, math.Inf(1): 1} {
		if got := Above(v); math.Abs(got-want) > 1e-9 {
			t.Errorf("the axis of values up to %v ends at %v, want %v", v, got, want)
		}
	}
	assert.Equal(t, "ticks up to 43", []float64{0, 10, 20, 30, 40}, ticks(0, 43, 5))
	for _, lo := range []float64{0, -0.4, -40, 1e-12} {
		for _, v := range ticks(lo, 43, 5) {
			if math.Signbit(v) && v == 0 {
				t.Errorf("a tick from %v is minus zero", lo)
			}
		}
	}
}

// drawing is what a reader finds in an SVG.
type drawing struct {
	elements map[string]int
	text     string
}

func read(t *testing.T, svg string) drawing {
	t.Helper()
	d := drawing{elements: map[string]int{}}
	decoder := xml.NewDecoder(strings.NewReader(svg))
	for {
		token, err := decoder.Token()
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("the drawing is no XML: %v\n%s", err, svg)
		}
		switch token := token.(type) {
		case xml.StartElement:
			d.elements[token.Name.Local]++
		case xml.CharData:
			d.text += string(token) + "\n"
		}
	}
	if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("a coordinate is no number:\n%s", svg)
	}
	return d
}

func somePlot(title string, values int) Plot {
	s := Series{Class: "a"}
	for i := range values {
		s.X, s.Y = append(s.X, math.Pow(10, float64(i+2))), append(s.Y, float64(i))
		s.Low, s.Top = append(s.Low, float64(i)/2), append(s.Top, float64(2*i))
	}
	return Plot{
		ID: "p", Title: title, Description: "What <it> shows",
		X:     Axis{Label: "nodes", Max: 20_000, Format: plain},
		Y:     Axis{Max: 10, Format: plain},
		Lines: []Series{s},
	}
}

func TestAPlotOnAPageHasALineAndABand(t *testing.T) {
	t.Parallel()
	page := somePlot("One", 3)
	got := read(t, page.SVG())
	for element, n := range map[string]int{"svg": 1, "path": 2, "circle": 0, "desc": 1} {
		if got.elements[element] != n {
			t.Errorf("%d elements %s, want %d:\n%s", got.elements[element], element, n, page.SVG())
		}
	}
	assert.Contains(t, got.text, "One\n", "What <it> shows\n", "nodes\n", "10000\n")
}
