package tables

import (
	"bytes"
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/jedib0t/go-pretty/v6/text"
	"pgregory.net/rapid"

	"berth.dev/berth/test/harness/assert"
)

func TestDurationsReadAsPeopleSayThem(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		0: "0s", 1: "<0.1ms", 100 * time.Microsecond: "0.1ms", 9990 * time.Microsecond: "10ms",
		340 * time.Millisecond:    "340ms",
		999600 * time.Microsecond: "1s", 1500 * time.Millisecond: "1.5s", 2 * time.Second: "2s",
		9960 * time.Millisecond: "10s",
		34 * time.Second:        "34s", 59*time.Second + 600*time.Millisecond: "1m", 90 * time.Second: "1m30s",
		2 * time.Minute:                  "2m",
		time.Hour - 300*time.Millisecond: "1h", 100 * time.Minute: "1h40m", 24*time.Hour - 20*time.Second: "1d",
		51 * time.Hour:       "2d3h",
		400 * 24 * time.Hour: "400d", -90 * time.Second: "-1m30s",
	} {
		assert.Equal(t, fmt.Sprint(d), want, Duration(d))
	}
	for s, want := range map[float64]string{0.25: "250ms", 6000: "1h40m", math.Inf(1): "forever", math.Inf(-1): "-forever",
		math.NaN(): "unknown"} {
		assert.Equal(t, fmt.Sprintf("%v s", s), want, Seconds(s))
	}
}

// sample is a table like those of the commands.
func sample(screen Screen) string {
	table := New(screen, Column{Name: "node"}, Column{Name: "total", Number: true},
		Column{Name: "GPUAware ×20", Number: true},
		Column{Name: "because"}, Column{Name: "rack", Extra: true})
	table.Row("a100-3", 2140, "120 → 95 = 1900",
		"it strands no GPU and adds nothing to the bill of the cluster, whose nodes are in use", "rack-17")
	table.Row("a-node-with-a-long-name.example.com", 7, "0", screen.Paint(Red, "it is empty")+
		", so that it would have to be opened for this pod alone", "rack-2")
	return table.String()
}

func TestATableOnAScreenOf80Columns(t *testing.T) {
	t.Parallel()
	assert.Equal(t, "the table", want80, "\n"+sample(Screen{Width: 80}))
}

const want80 = `
 node                      total     GPUAware ×20  because              rack
 a100-3                     2140  120 → 95 = 1900  it strands no GPU    rack-17
                                                   and adds nothing to
                                                   the bill of the
                                                   cluster, whose
                                                   nodes are in use
 a-node-with-a-long-name.      7                0  it is empty, so      rack-2
 example.com                                       that it would have
                                                   to be opened for
                                                   this pod alone
`

func TestNamesOfColumnsBreakAtHyphens(t *testing.T) {
	t.Parallel()
	table := New(Screen{Width: 40}, Column{Name: "weights by profile"}, Column{Name: "gpu-aware-scheduler", Number: true},
		Column{Name: "cost-optimized-profile", Number: true})
	table.Row("TaintToleration", 3, 3)
	const want = `
                       gpu-       cost-
 weights by          aware-  optimized-
 profile          scheduler     profile
 TaintToleration          3           3
`
	assert.Equal(t, "the table", want, "\n"+table.String())
}

func TestWordsAreNotBrokenWhereNamesOfColumnsCanBe(t *testing.T) {
	t.Parallel()
	table := New(Screen{Width: 70}, Column{Name: "weights by profile"}, Column{Name: "gpu-aware-scheduler", Number: true},
		Column{Name: "cost-optimized-scheduler", Number: true}, Column{Name: "scheduler-plugins-scheduler", Number: true})
	table.Row("NodeResourcesBalancedAllocation", 1, 1, 1)
	//nolint:dupword // a table
	const want = `
                                                   cost-  scheduler-
                                  gpu-aware-  optimized-    plugins-
 weights by profile                scheduler   scheduler   scheduler
 NodeResourcesBalancedAllocation           1           1           1
`
	assert.Equal(t, "the table", want, "\n"+table.String())
}

func TestBrokenNumbersStayToTheRight(t *testing.T) {
	t.Parallel()
	screen := Screen{Width: 40, Color: true}
	table := New(screen, Column{Name: "metric"}, Column{Name: "A", Number: true}, Column{Name: "B", Number: true})
	table.Row("GPUs stranded", "117.73 [116.02,119.44]", "20.61 "+screen.Paint(Green, "better"))
	const want = `
 metric                       A       B
 GPUs stranded           117.73   20.61
                [116.02,119.44]  better
`
	assert.Equal(t, "the table", want, "\n"+text.StripEscape(table.String()))
}

func TestAWideTableHasAllOfItsColumnsOnOneLineEach(t *testing.T) {
	t.Parallel()
	for _, screen := range []Screen{{}, {Width: 60, Wide: true}} {
		got := sample(screen)
		if lines := strings.Count(got, "\n"); lines != 3 || !strings.Contains(got, "rack-17") ||
			strings.Contains(got, "--wide") {
			t.Errorf("%+v: %d lines:\n%s", screen, lines, got)
		}
	}
}

func TestLinesAreWrappedWithTheirIndent(t *testing.T) {
	t.Parallel()
	got := Screen{Width: 20}.Wrap("short\n  one two three four five\nsix seven eight nine ten\n")
	assert.Equal(t, "", "short\n  one two three four\n  five\nsix seven eight nine\nten\n", got)
}

func TestAnyTableFitsAnyScreen(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		screen := Screen{Width: rapid.IntRange(20, 200).Draw(t, "width"), Color: rapid.Bool().Draw(t, "color")}
		columns := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Column {
			return Column{Name: rapid.StringMatching(`[a-z]{1,12}( [a-z]{1,8})?`).Draw(t, "name"),
				Number: rapid.Bool().Draw(t, "number"), Extra: rapid.Bool().Draw(t, "extra")}
		}), 1, 8).Draw(t, "columns")
		table := New(screen, columns...)
		for range rapid.IntRange(0, 5).Draw(t, "rows") {
			cells := make([]any, len(columns))
			for i := range cells {
				cell := rapid.StringMatching(`([a-zé→]{1,40} ?){0,8}`).Draw(t, "cell")
				if rapid.Bool().Draw(t, "painted") {
					cell = screen.Paint(Red, cell)
				}
				cells[i] = cell
			}
			table.Row(cells...)
		}
		got := table.String()
		if widest := text.LongestLineLen(got); widest > screen.Width {
			t.Fatalf("%d columns wide on a screen of %d:\n%s", widest, screen.Width, got)
		}
	})
}

func TestColorsAndWidthsFollowTheEnvironment(t *testing.T) {
	t.Setenv("COLUMNS", "97")
	var b bytes.Buffer
	out := NewOutput(&b, true)
	if want := (Screen{Width: 97, Wide: true}); ScreenOf(out) != want {
		t.Errorf("the screen of a buffer is %+v, want %+v", ScreenOf(out), want)
	}
	t.Setenv("COLUMNS", "no number")
	if got := NewOutput(&b, false).Screen; got != (Screen{}) {
		t.Errorf("the screen of a buffer is %+v, want none", got)
	}
	if got := ScreenOf(&b); got != (Screen{}) {
		t.Errorf("the screen of a writer is %+v, want none", got)
	}
	if got := (Screen{}).Paint(Red, "a"); got != "a" {
		t.Errorf("painted %q without colors", got)
	}
	if got := fmt.Sprintf("%q", Screen{Color: true}.Paint(Red, "a")); got != `"\x1b[31ma\x1b[0m"` {
		t.Errorf("painted %s", got)
	}
}
