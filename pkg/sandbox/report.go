package sandbox

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// ReportFD is the file descriptor on which the control plane reports to the process that started it. The next one is
// the lock of the folder, which lasts until the process ends.
const ReportFD = 3

// Report is one line that the control plane sends while it starts.
type Report struct {
	// Step that begins now, for a progress display.
	Step string `json:"step,omitempty"`
	// Ready is sent once, when all components are ready.
	Ready bool `json:"ready,omitempty"`
	// Error ends the start; the process exits after it.
	Error string `json:"error,omitempty"`
}

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

// errStoppedEarly says that the control plane ended without a report.
var errStoppedEarly = errors.New("the control plane stopped before it was ready")
