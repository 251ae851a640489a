package scenarios_test

import (
	"fmt"
	"strconv"
	"strings"
	"time"
)

// line is one command of a scenario; README.md documents the grammar.
type line struct {
	number  int
	text    string
	command string
	// args are the words after the command without options.
	args []string
	// options holds key=value words, flags words that stand alone after the arguments.
	options map[string]string
}

// parse reads a scenario.
func parse(text string) ([]line, error) {
	var lines []line
	for i, raw := range strings.Split(text, "\n") {
		words, err := split(raw)
		if err != nil {
			return nil, fmt.Errorf("line %d: %w", i+1, err)
		}
		if len(words) == 0 {
			continue
		}
		l := line{number: i + 1, text: strings.TrimSpace(raw), command: words[0], options: map[string]string{}}
		for _, w := range words[1:] {
			if key, value, ok := strings.Cut(w, "="); ok && !strings.HasPrefix(w, "\x00") {
				l.options[key] = value
				continue
			}
			l.args = append(l.args, strings.TrimPrefix(w, "\x00"))
		}
		lines = append(lines, l)
	}
	return lines, nil
}

// split cuts a line into words; a quoted word keeps its spaces and is marked so that it is never an option.
func split(s string) ([]string, error) {
	var words []string
	for s = strings.TrimSpace(s); s != "" && s[0] != '#'; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			word, rest, ok := strings.Cut(s[1:], "\"")
			if !ok {
				return nil, fmt.Errorf("a quote is not closed")
			}
			words, s = append(words, "\x00"+word), rest
			continue
		}
		end := strings.IndexAny(s, " \t")
		if end < 0 {
			end = len(s)
		}
		words, s = append(words, s[:end]), s[end:]
	}
	return words, nil
}

func (l *line) arg(i int) string {
	if i < len(l.args) {
		return l.args[i]
	}
	return ""
}

func (l *line) int(i int) (int, error) {
	n, err := strconv.Atoi(l.arg(i))
	if err != nil {
		return 0, fmt.Errorf("line %d: argument %d of %q has to be a number", l.number, i+1, l.text)
	}
	return n, nil
}

func (l *line) option(key, otherwise string) string {
	if v, ok := l.options[key]; ok {
		return v
	}
	return otherwise
}

// with returns the options whose key starts with prefix, without it.
func (l *line) with(prefix string) map[string]string {
	out := map[string]string{}
	for k, v := range l.options {
		if key, ok := strings.CutPrefix(k, prefix); ok {
			out[key] = v
		}
	}
	return out
}

func (l *line) duration(key string, otherwise time.Duration) (time.Duration, error) {
	v, ok := l.options[key]
	if !ok {
		return otherwise, nil
	}
	d, err := time.ParseDuration(v)
	if err != nil {
		return 0, fmt.Errorf("line %d: %s: %w", l.number, key, err)
	}
	return d, nil
}
