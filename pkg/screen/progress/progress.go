// Package progress shows on standard error how far work is: on a terminal in one line that is written again and again
// and never wraps, elsewhere in a line now and then.
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
	// again is how often the line of a terminal is written.
	again = 200 * time.Millisecond
	// nowAndThen is how often a line is written elsewhere.
	nowAndThen = 10 * time.Second
	// usualWidth is taken where a terminal does not tell its own.
	usualWidth = 80
	// eraseRest erases the line of a terminal from the cursor on.
	eraseRest = "\x1b[K"
)

// Line is the last line of what is written.
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
			return usualWidth
		}
		return width
	}}
}

// Show shows a text that is soon replaced. It is for terminals only.
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

// Clear takes away what Show has shown.
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

// Follow shows how many of the pods are done, as read says, until the function that it returns is called.
func Follow(out io.Writer, label string, read func() (done, total int64)) (stop func()) {
	line, began, p := NewLine(out), time.Now(), &pace{}
	if line.width == nil {
		return every(nowAndThen, func() {
			done, total := read()
			line.Keep(label + ": " + numbers(done, total, p.at(time.Since(began), done)))
		})
	}
	end := every(again, func() {
		done, total := read()
		line.Show(bar(label, done, total, p.at(time.Since(began), done), line.width()-1))
	})
	return func() {
		end()
		line.Clear()
	}
}

// recent is the time over which the pace is taken: what is done first is often done much faster than what waits in a
// full cluster.
const recent = time.Minute

// pace is how much was done when, in recent time and once before.
type pace struct {
	times []time.Duration
	done  []int64
}

// at notes how much is done and returns how much of it is done in a second.
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

// numbers say how far it is, how fast, and how long it will take at that pace.
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

// The bar is left out where there is no place for a useful one.
const shortestBar, longestBar = 10, 40

// bar is a line of at most n characters: a bar where there is room, and the numbers.
func bar(label string, done, total int64, perSecond float64, width int) string {
	text := numbers(done, total, perSecond)
	room := min(width-utf8.RuneCountInString(label+text)-len(" [] "), longestBar)
	if room < shortestBar || total < 1 {
		return cut(label+": "+text, width)
	}
	full := int(min(done, total) * int64(room) / total)
	return fmt.Sprintf("%s [%s%s] %s", label, strings.Repeat("#", full), strings.Repeat(".", room-full), text)
}

// every calls f again and again until the function that it returns is called.
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
