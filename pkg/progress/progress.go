// Package progress shows on standard error how far work is: on a terminal in one line that is written again and again and never
// wraps, elsewhere in a line now and then.
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

// cut shortens a text to so many characters.
func cut(text string, width int) string {
	if utf8.RuneCountInString(text) <= width {
		return text
	}
	if width < 1 {
		return ""
	}
	return string([]rune(text)[:width-1]) + "…"
}

// Follow shows how many of the pods have been offered, as read says, until the function that it returns is called.
func Follow(out io.Writer, label string, read func() (offered, total int64)) (stop func()) {
	line, began := NewLine(out), time.Now()
	if line.width == nil {
		return Every(nowAndThen, func() {
			offered, total := read()
			line.Keep(label + ": " + numbers(offered, total, time.Since(began)))
		})
	}
	end := Every(again, func() {
		offered, total := read()
		line.Show(bar(label, offered, total, time.Since(began), line.width()-1))
	})
	return func() {
		end()
		line.Clear()
	}
}

// numbers say how far it is, how fast, and how long it will take.
func numbers(offered, total int64, elapsed time.Duration) string {
	rate := 0.0
	if elapsed > 0 {
		rate = float64(offered) / elapsed.Seconds()
	}
	left := "time left unknown"
	if rate > 0 {
		left = (time.Duration(float64(max(total-offered, 0))/rate) * time.Second).String() + " left"
	}
	return fmt.Sprintf("%d of %d pods, %.0f pods/s, %s", offered, total, rate, left)
}

// The bar is left out where there is no place for a useful one.
const shortestBar, longestBar = 10, 40

// bar is a line of at most so many characters: a bar where there is room, and the numbers.
func bar(label string, offered, total int64, elapsed time.Duration, width int) string {
	text := numbers(offered, total, elapsed)
	room := min(width-utf8.RuneCountInString(label+text)-len(" [] "), longestBar)
	if room < shortestBar || total < 1 {
		return cut(label+": "+text, width)
	}
	done := int(min(offered, total) * int64(room) / total)
	return fmt.Sprintf("%s [%s%s] %s", label, strings.Repeat("#", done), strings.Repeat(".", room-done), text)
}

// Every calls f again and again until the function that it returns is called.
func Every(interval time.Duration, f func()) (stop func()) {
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
