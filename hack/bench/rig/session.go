package rig

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"time"
)

// Outcome is what a benchmark writes as JSON: its figures, and what a reader has to know about the machine.
type Outcome struct {
	Command []string  `json:"command"`
	Began   time.Time `json:"began"`
	Seconds float64   `json:"seconds"`
	CPUs    int       `json:"cpus"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores"`
	Results    any     `json:"results"`
}

// Session is the time of a benchmark, from beginning to end.
type Session struct {
	began  time.Time
	before load
}

// Begin starts to count what else the machine does.
func Begin() (*Session, error) {
	before, err := readLoad()
	return &Session{time.Now(), before}, err
}

// End prints how busy the machine was with other work, and writes the results with it as JSON to a file if one is
// named.
func (s *Session) End(out io.Writer, file string, results any) error {
	after, err := readLoad()
	if err != nil {
		return err
	}
	o := Outcome{
		Command: append([]string{filepath.Base(os.Args[0])}, os.Args[1:]...), Began: s.began.UTC().Truncate(time.Second),
		Seconds: time.Since(s.began).Seconds(), CPUs: runtime.NumCPU(), OtherCores: after.otherCoresSince(s.before),
		Results: results,
	}
	if _, err := fmt.Fprintf(out, "%s on %d cores; %.2f of them were busy with other work\n",
		time.Duration(o.Seconds*float64(time.Second)).Round(time.Second), o.CPUs, o.OtherCores); err != nil {
		return fmt.Errorf("printing how busy the machine was: %w", err)
	}
	if file == "" {
		return nil
	}
	data, err := json.MarshalIndent(o, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the figures: %w", err)
	}
	if err := os.WriteFile(file, append(data, '\n'), 0o600); err != nil {
		return fmt.Errorf("writing the figures: %w", err)
	}
	return nil
}
