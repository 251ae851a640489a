package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
)

// reportFD is the file descriptor on which the control plane's process reports to the one that started it; the lock of
// the folder follows.
const (
	reportFD = 3
	lockFD   = 4
)

// Report is one line that the control plane's process sends while it comes up.
type Report struct {
	// Step that begins now, for a progress display.
	Step string `json:"step,omitempty"`
	// Ready is sent once, when everything that was asked for runs.
	Ready bool `json:"ready,omitempty"`
	// Error ends the start; the process exits after it.
	Error string `json:"error,omitempty"`
}

// Reporter sends reports to the process that started this one.
type Reporter struct {
	out *os.File
	enc *json.Encoder
}

// InheritedReporter returns the reporter of a control plane's process. The sandbox's lock stays held through the
// inherited descriptor until the process ends.
func InheritedReporter() *Reporter {
	out := os.NewFile(reportFD, "report")
	return &Reporter{out: out, enc: json.NewEncoder(out)}
}

// Send sends one report. An error means that the other side has stopped listening.
func (r *Reporter) Send(report Report) error {
	if err := r.enc.Encode(report); err != nil {
		return fmt.Errorf("reporting progress: %w", err)
	}
	return nil
}

// Close tells the listener that nothing more will come.
func (r *Reporter) Close() error { return r.out.Close() }

// follow reads reports until the sandbox is ready, passing each step to progress.
func follow(in io.Reader, progress func(step string)) error {
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		var report Report
		if err := json.Unmarshal(lines.Bytes(), &report); err != nil {
			return fmt.Errorf("reading the control plane's report: %w", err)
		}
		switch {
		case report.Error != "":
			return errors.New(report.Error)
		case report.Ready:
			return nil
		case progress != nil:
			progress(report.Step)
		}
	}
	return errStoppedEarly
}

// errStoppedEarly says that the control plane's process ended without a word.
var errStoppedEarly = errors.New("the control plane stopped before it was ready")
