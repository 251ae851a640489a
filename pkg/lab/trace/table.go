package trace

import (
	"bufio"
	"bytes"
	"encoding/csv"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"k8s.io/apimachinery/pkg/util/validation"

	"berth.dev/berth/pkg/cost/price"
)

// table reads a CSV file with a header row, by column name.
type table struct {
	file    string
	csv     *csv.Reader
	bounded *bounded
	columns map[string]int
	header  []string
}

// maxLine bounds a line, and a row, which may have line breaks between quotes.
const maxLine = 1 << 20

// bounded fails at a line or a row longer than maxLine, where a CSV reader would read on until the memory is full.
type bounded struct {
	io.Reader
	file         string
	line, length int
	// read counts bytes. The current row begins after rowStart of them, in line rowLine.
	read, rowStart int64
	rowLine        int
}

// Read is part of io.Reader.
func (b *bounded) Read(p []byte) (int, error) {
	// More is only read if the row has not ended, so all bytes since its beginning are part of it.
	if b.read-b.rowStart > maxLine {
		return 0, &Error{File: b.file, Line: b.rowLine,
			Err: fmt.Errorf("the row that begins here is longer than %d MiB (is a quote missing?)", maxLine>>20)}
	}
	n, err := b.Reader.Read(p)
	b.read += int64(n)
	for rest := p[:n]; len(rest) > 0; {
		end := bytes.IndexByte(rest, '\n')
		if end < 0 {
			end = len(rest)
		}
		if b.length += end; b.length > maxLine {
			return 0, tooLong(b.file, b.line+1)
		}
		if end == len(rest) {
			break
		}
		b.line, b.length = b.line+1, 0
		rest = rest[end+1:]
	}
	return n, err
}

func tooLong(file string, line int) error {
	return &Error{File: file, Line: line, Err: fmt.Errorf("the line is longer than %d MiB", maxLine>>20)}
}

// openTable reads the header.
func openTable(r io.Reader, file string) (*table, error) {
	limited := &bounded{Reader: r, file: file, rowLine: 1}
	buffered := bufio.NewReader(limited)
	if mark, err := buffered.Peek(3); err == nil && string(mark) == "\ufeff" {
		_, _ = buffered.Discard(3)
	}
	t := &table{file: file, csv: csv.NewReader(buffered), bounded: limited, columns: map[string]int{}}
	t.csv.ReuseRecord = true
	t.csv.TrimLeadingSpace = true
	header, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, &Error{File: file, Err: errors.New("the file is empty; want a header row")}
	}
	if err != nil {
		return nil, t.parseError(err)
	}
	for i, name := range header {
		name = strings.TrimSpace(name)
		if !utf8.ValidString(name) {
			return nil, &Error{File: file, Line: 1, Err: errors.New("the file is not text; want a CSV file with a header row")}
		}
		if _, double := t.columns[name]; double {
			return nil, &Error{File: file, Line: 1, Err: fmt.Errorf("column %q is there twice", name)}
		}
		t.columns[name] = i
		t.header = append(t.header, name)
	}
	return t, nil
}

// require checks that the header has every required column, and no other columns than the optional ones.
func (t *table) require(required, optional []string) error {
	for _, name := range required {
		if _, ok := t.columns[name]; !ok {
			return &Error{File: t.file, Line: 1,
				Err: fmt.Errorf("column %q is missing; want %s", name, strings.Join(required, ","))}
		}
	}
	for _, name := range t.header {
		if !slices.Contains(required, name) && !slices.Contains(optional, name) {
			return &Error{File: t.file, Line: 1, Err: fmt.Errorf("column %q is unknown; allowed are %s", name,
				strings.Join(append(slices.Clone(required), optional...), ","))}
		}
	}
	return nil
}

// record reads a row and records where the next one begins.
func (t *table) record() ([]string, error) {
	fields, err := t.csv.Read()
	if err == nil {
		line, _ := t.csv.FieldPos(len(fields) - 1)
		t.bounded.rowStart, t.bounded.rowLine = t.csv.InputOffset(), line+strings.Count(fields[len(fields)-1], "\n")+1
	}
	return fields, err
}

// next returns the next row, or nil at the end.
func (t *table) next() (*row, error) {
	fields, err := t.record()
	if errors.Is(err, io.EOF) {
		return nil, nil
	}
	if err != nil {
		return nil, t.parseError(err)
	}
	line, _ := t.csv.FieldPos(0)
	return &row{table: t, line: line, fields: fields}, nil
}

// each calls read for every row, up to the first error.
func (t *table) each(read func(*row)) error {
	for {
		row, err := t.next()
		if err != nil || row == nil {
			return err
		}
		if read(row); row.err != nil {
			return row.err
		}
	}
}

func (t *table) parseError(err error) error {
	var parse *csv.ParseError
	var ours *Error
	if errors.As(err, &ours) {
		return ours
	}
	if !errors.As(err, &parse) {
		return &Error{File: t.file, Err: err}
	}
	if errors.Is(parse.Err, csv.ErrFieldCount) {
		return &Error{File: t.file, Line: parse.Line,
			Err: fmt.Errorf("wrong number of columns; the header has %d (is the file cut off?)", len(t.header))}
	}
	return &Error{File: t.file, Line: parse.Line, Err: parse.Err}
}

// row is one line. Its methods read a column and keep the first error.
type row struct {
	table  *table
	line   int
	fields []string
	err    error
}

func (r *row) fail(column, value, allowed string) {
	r.refuse(fmt.Errorf("column %q: %q is not allowed; want %s", column, value, allowed))
}

// refuse is an error of the row as a whole.
func (r *row) refuse(err error) {
	if r.err == nil && err != nil {
		r.err = &Error{File: r.table.file, Line: r.line, Err: err}
	}
}

// text returns the column's text, empty when the column is not there.
func (r *row) text(column string) string {
	i, ok := r.table.columns[column]
	if !ok {
		return ""
	}
	return strings.TrimSpace(r.fields[i])
}

// name returns a text that may be part of a Kubernetes object's name.
func (r *row) name(column string) string {
	value := r.text(column)
	if problem := nameProblem(value); problem != "" {
		r.fail(column, value, problem)
	}
	return value
}

func nameProblem(value string) string {
	if value == "" || len(value) > maxName {
		return fmt.Sprintf("1 to %d characters", maxName)
	}
	for i, c := range []byte(value) {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (c != '-' && c != '.' || i == 0 || i == len(value)-1) {
			return "lower case letters, digits, '-' and '.', a letter or digit at both ends"
		}
	}
	return ""
}

// integer returns a whole number between lo and hi, or absent when the column is missing or empty.
func (r *row) integer(column string, lo, hi, absent int64) int64 {
	value := r.text(column)
	if value == "" {
		return absent
	}
	n, err := strconv.ParseInt(value, 10, 64)
	if err != nil || n < lo || n > hi {
		r.fail(column, value, fmt.Sprintf("a whole number from %d to %d", lo, hi))
		return absent
	}
	return n
}

// required is integer for a column that may not be empty.
func (r *row) required(column string, lo, hi int64) int64 {
	if r.text(column) == "" {
		r.fail(column, "", fmt.Sprintf("a whole number from %d to %d", lo, hi))
	}
	return r.integer(column, lo, hi, lo)
}

func (r *row) duration(column string, absent time.Duration) time.Duration {
	value := r.text(column)
	if value == "" {
		return absent
	}
	d, err := parseDuration(value)
	if err != nil {
		r.fail(column, value, err.Error())
	}
	return d
}

// parseDuration reads seconds ("90", "0.5") or a Go duration ("1h30m"), never negative.
func parseDuration(value string) (time.Duration, error) {
	want := errors.New("seconds (90) or a duration (1h30m), not negative, at most 100 years")
	if seconds, err := strconv.ParseFloat(value, 64); err == nil {
		if math.IsNaN(seconds) || seconds < 0 || seconds > maxSeconds {
			return 0, want
		}
		return time.Duration(math.Round(seconds*1e6)) * time.Microsecond, nil
	}
	d, err := time.ParseDuration(value)
	if err != nil || d < 0 || d > maxSeconds*time.Second {
		return 0, want
	}
	return d.Round(time.Microsecond), nil
}

func (r *row) boolean(column string) bool {
	switch value := r.text(column); value {
	case "", "false", "0", "no":
		return false
	case "true", "1", "yes":
		return true
	default:
		r.fail(column, value, "true or false")
		return false
	}
}

// dollarsPerHour reads decimal dollars.
func (r *row) dollarsPerHour() price.MicroDollars {
	const column = "dollars_per_hour"
	value := r.text(column)
	if value == "" {
		return 0
	}
	micro, err := price.Parse(value)
	if err != nil {
		r.fail(column, value, price.Allowed)
	}
	return micro
}

func (r *row) models(column string) []string {
	value := r.text(column)
	if value == "" {
		return nil
	}
	models := strings.Split(value, "|")
	for _, model := range models {
		if !labelValue(model) {
			r.fail(column, value, "GPU products joined by |, each a valid label value")
		}
	}
	return models
}

// labelValue says whether s may be the value of a Kubernetes label and is not empty.
func labelValue(s string) bool { return s != "" && len(validation.IsValidLabelValue(s)) == 0 }

func (r *row) label(column string) string {
	value := r.text(column)
	if value != "" && !labelValue(value) {
		r.fail(column, value, "a valid label value (at most 63 letters, digits, '-', '_' and '.')")
	}
	return value
}

// namespace returns the name of a namespace, empty where there is none.
func (r *row) namespace(column string) string {
	value := r.text(column)
	if value != "" && len(validation.IsDNS1123Label(value)) > 0 {
		r.fail(column, value, "the name of a namespace (at most 63 lower case letters, digits and '-')")
	}
	return value
}

// labels reads the labels of a pod.
func (r *row) labels(column string) map[string]string {
	text := r.text(column)
	if text == "" {
		return nil
	}
	labels := map[string]string{}
	for _, pair := range strings.Split(text, "|") {
		key, value, _ := strings.Cut(pair, "=")
		_, twice := labels[key]
		prefix, name, prefixed := strings.Cut(key, "/")
		if !prefixed {
			prefix, name = "x", key
		}
		if twice || nameProblem(prefix) != "" || !labelValue(name) || value != "" && !labelValue(value) {
			r.fail(column, text, "labels such as team=vision, joined by |, each key once")
		}
		labels[key] = value
	}
	return labels
}
