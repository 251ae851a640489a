package release_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// step is a block of commands of a page, and what the page says that they print.
type step struct {
	commands string
	// want are the lines of the output; nil: the page shows none.
	want []string
}

// fence finds the fenced blocks of a page with their language.
var fence = regexp.MustCompile("(?ms)^```(\\w+)\n(.*?)^```$")

// readPage returns the steps of the page of an example.
func readPage(folder string) ([]step, error) {
	page, err := os.ReadFile(filepath.Join(folder, "README.md"))
	if err != nil {
		return nil, err
	}
	return parsePage(string(page))
}

func parsePage(page string) ([]step, error) {
	var steps []step
	for _, block := range fence.FindAllStringSubmatch(page, -1) {
		language, text := block[1], block[2]
		switch {
		case language == "sh":
			steps = append(steps, step{commands: text})
		case language != "text":
			return nil, fmt.Errorf("a block of %s: pages have blocks of sh and text only", language)
		case len(steps) == 0 || steps[len(steps)-1].want != nil:
			return nil, fmt.Errorf("an output without commands: %s", text)
		default:
			steps[len(steps)-1].want = strings.Split(strings.TrimSpace(text), "\n")
		}
	}
	return steps, nil
}

// writes are the first words of commands that change something, or that have to be run once only.
var writes = regexp.MustCompile(`(?m)kubectl (-n \S+ )?(apply|delete|label|taint|scale|patch|run)|bin/berth (up|down)|&$|label-nodes`)

// repeatable tells whether the commands only read, so that they can be repeated until they print what is wanted.
func (s step) repeatable() bool { return s.want != nil && !writes.MatchString(s.commands) }

// matches compares an output with that of the page. Runs of spaces are alike, and … stands for anything within a line;
// on a line of its own, for any number of lines.
func matches(want []string, got string) bool {
	var pattern strings.Builder
	pattern.WriteString("^")
	for _, line := range want {
		words := strings.Join(strings.Fields(line), " ")
		if words == "…" {
			pattern.WriteString(`(.*\n)*`)
			continue
		}
		pattern.WriteString(strings.ReplaceAll(regexp.QuoteMeta(words), "…", "[^\n]*") + "\n")
	}
	pattern.WriteString("$")
	var lines strings.Builder
	for line := range strings.Lines(got) {
		if words := strings.Join(strings.Fields(line), " "); words != "" {
			lines.WriteString(words + "\n")
		}
	}
	return regexp.MustCompile(pattern.String()).MatchString(lines.String())
}

func TestMatches(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		want, got string
		matches   bool
	}{
		"the same words":                                {"NAME AGE\na 3s", "NAME    AGE\na       3s\n", true},
		"another word":                                  {"a 3s", "a 4s", false},
		"anything within a line":                        {"pod-… node-…", "pod-abcde   node-7\n", true},
		"anything does not cross lines":                 {"pod-…", "pod-a\npod-b\n", false},
		"a line too many":                               {"a", "a\nb\n", false},
		"a line too few":                                {"a\nb", "a\n", false},
		"a line of its own stands for several":          {"a\n…\nd", "a\nb\nc\nd\n", true},
		"a line of its own stands for none":             {"a\n…\nd", "a\nd\n", true},
		"characters of regular expressions are literal": {"(a|b) [1]", "a", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := matches(strings.Split(tc.want, "\n"), tc.got); got != tc.matches {
				t.Errorf("%q and %q match: %t, want %t", tc.want, tc.got, got, tc.matches)
			}
		})
	}
}

func TestParsePage(t *testing.T) {
	t.Parallel()
	for name, page := range map[string]string{
		"an output without commands": "```text\na\n```\n",
		"two outputs of one command": "```sh\ntrue\n```\n```text\na\n```\n```text\nb\n```\n",
		"a block that nobody runs":   "```yaml\na: b\n```\n",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if steps, err := parsePage(page); err == nil {
				t.Errorf("parsed %v, want an error", steps)
			}
		})
	}
}
