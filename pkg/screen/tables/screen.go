// Package tables writes tables for terminals of any width, and durations in suitable units. All commands use it, so
// that tables look alike and fit the terminal. It does not know what tables are about.
package tables

import (
	"io"
	"os"
	"strconv"

	"golang.org/x/term"
)

// Screen describes where a table is shown.
type Screen struct {
	// Width in columns; 0 is unlimited, as for a file.
	Width int
	// Wide shows all columns in full width.
	Wide bool
	// Color says that colors may be used.
	Color bool
}

// Output is a writer whose screen is known.
type Output struct {
	io.Writer
	Screen Screen
}

// NewOutput determines the screen of a writer. The environment variables COLUMNS and NO_COLOR override it.
func NewOutput(w io.Writer, wide bool) Output {
	s := Screen{Wide: wide}
	if file, ok := w.(*os.File); ok && term.IsTerminal(int(file.Fd())) { //nolint:gosec // descriptors are small
		s.Color = os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb"
		if width, _, err := term.GetSize(int(file.Fd())); err == nil { //nolint:gosec // descriptors are small
			s.Width = width
		}
	}
	if width, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && width > 0 {
		s.Width = width
	}
	return Output{w, s}
}

// ScreenOf is the screen of an output. Other writers have unlimited width and no colors.
func ScreenOf(w io.Writer) Screen {
	if out, ok := w.(Output); ok {
		return out.Screen
	}
	return Screen{}
}

// Color of a text.
type Color string

// Colors that are readable on light and dark terminals.
const (
	Red    Color = "31"
	Green  Color = "32"
	Yellow Color = "33"
)

// Paint colors a text, where the screen has colors.
func (s Screen) Paint(c Color, text string) string {
	if !s.Color || text == "" {
		return text
	}
	return "\x1b[" + string(c) + "m" + text + "\x1b[0m"
}
