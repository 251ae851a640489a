// Package progress shows the progress of work on standard error: on a terminal in one line that is updated, elsewhere
// in a new line from time to time.
//
// Commands and long computations call it. It never writes to standard output.
package progress

import (
	"fmt"
	"io"
	"os"
	"strings"
	"time"
	"unicode/utf8"

	"golang.org/x/term"
)

const (
	// updateEvery is the interval of updates on a terminal.
	updateEvery = 200 * time.Millisecond
	// lineEvery is the interval of lines elsewhere.
	lineEvery = 10 * time.Second
	// defaultWidth is for a terminal of unknown width.
	defaultWidth = 80
	// eraseRest erases the line of a terminal from the cursor on.
	eraseRest = "\x1b[K"
)

// Line is the last line of a terminal, or of another output.
type Line struct {
	out io.Writer
	// width of the terminal, nil where there is none.
	width func() int
}

// NewLine returns the line of a writer.
func NewLine(out io.Writer) *Line {
	file, isFile := out.(*os.File)
	if !isFile || !term.IsTerminal(int(file.Fd())) {
		return &Line{out: out}
	}
	return &Line{out: out, width: func() int {
		width, _, err := term.GetSize(int(file.Fd()))
		if err != nil || width < 1 {
			return defaultWidth
		}
		return width
	}}
}

// Show shows a text until the next one. It does nothing unless there is a terminal.
func (l *Line) Show(text string) {
	if l.width != nil {
		_, _ = fmt.Fprint(l.out, "\r"+cut(text, l.width()-1)+eraseRest)
	}
}

// Keep shows a text that stays.
func (l *Line) Keep(text string) {
	if l.width != nil {
		text = "\r" + cut(text, l.width()-1) + eraseRest
	}
	_, _ = fmt.Fprintln(l.out, text)
}

// Clear removes the text of Show.
func (l *Line) Clear() {
	if l.width != nil {
		_, _ = fmt.Fprint(l.out, "\r"+eraseRest)
	}
}

// cut shortens a text to n characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// Follow shows the progress that read returns until the returned function is called.
func Follow(out io.Writer, label string, read func() (done, total int64)) (stop func()) {
	line, began, p := NewLine(out), time.Now(), &pace{}
	if line.width == nil {
		return every(lineEvery, func() {
			done, total := read()
			line.Keep(label + ": " + numbers(done, total, p.at(time.Since(began), done)))
		})
	}
	end := every(updateEvery, func() {
		done, total := read()
		line.Show(bar(label, done, total, p.at(time.Since(began), done), line.width()-1))
	})
	return func() {
		end()
		line.Clear()
	}
}

// recent is the time over which the pace is computed. Placing pods in a full cluster is slower than at the beginning.
const recent = time.Minute

// pace has measurements of the recent time, and one before.
type pace struct {
	times []time.Duration
	done  []int64
}

// at adds a measurement and returns the recent progress in a second.
func (p *pace) at(elapsed time.Duration, done int64) float64 {
	for len(p.times) > 1 && p.times[1] <= elapsed-recent {
		p.times, p.done = p.times[1:], p.done[1:]
	}
	if len(p.times) == 0 {
		p.times, p.done = []time.Duration{0}, []int64{0}
	}
	p.times, p.done = append(p.times, elapsed), append(p.done, done)
	seconds := (elapsed - p.times[0]).Seconds()
	if seconds <= 0 {
		return 0
	}
	return float64(done-p.done[0]) / seconds
}

// numbers is the progress, the pace and the remaining time.
func numbers(done, total int64, perSecond float64) string {
	left := "time left unknown"
	switch {
	case total > 0 && done >= total:
		left = "ending"
	case perSecond > 0:
		left = (time.Duration(float64(total-done)/perSecond) * time.Second).String() + " left"
	}
	decimals := 0
	if perSecond < 10 {
		decimals = 1
	}
	return fmt.Sprintf("%d of %d pods, %.*f pods/s, %s", done, total, decimals, perSecond, left)
}

// The bar is left out if there is no space for a useful one.
const shortestBar, longestBar = 10, 40

// bar is a line of at most width characters: a bar if there is space, and the numbers.
func bar(label string, done, total int64, perSecond float64, width int) string {
	text := numbers(done, total, perSecond)
	space := min(width-utf8.RuneCountInString(label+text)-len(" [] "), longestBar)
	if space < shortestBar || total < 1 {
		return cut(label+": "+text, width)
	}
	full := int(min(done, total) * int64(space) / total)
	return fmt.Sprintf("%s [%s%s] %s", label, strings.Repeat("#", full), strings.Repeat(".", space-full), text)
}

// every calls f in an interval until the returned function is called.
func every(interval time.Duration, f func()) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(ended)
		ticker := time.NewTicker(interval)
		defer ticker.Stop()
		for {
			select {
			case <-done:
				return
			case <-ticker.C:
				f()
			}
		}
	}()
	return func() {
		close(done)
		<-ended
	}
}

// Steps returns a function that prints each step with the seconds since now.
func Steps(out io.Writer) func(step string) {
	line, begin := NewLine(out), time.Now()
	return func(step string) { line.Keep(fmt.Sprintf("%5.1fs  %s", time.Since(begin).Seconds(), step)) }
}
