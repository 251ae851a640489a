package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"

	"berth.dev/berth/test/histories/history"
	"berth.dev/berth/test/invariants"
)

// crashed is the fault of a history that ended the process.
const crashed = "the scheduler crashed"

// batchOf lives through seeds in a process of its own, until the first fault. It returns the seed of the fault, or the
// one after the last.
func batchOf(ctx context.Context, first, last uint64) (uint64, *invariants.Fault, error) {
	output, crash, err := spawn(ctx, "--seeds", fmt.Sprintf("%d-%d", first, last))
	if err != nil {
		return first, nil, err
	}
	seed, open := first, false
	lines := bufio.NewScanner(bytes.NewReader(output))
	for lines.Scan() {
		word, rest, _ := strings.Cut(lines.Text(), " ")
		switch word {
		case "begin":
			open = true
			if _, err := fmt.Sscan(rest, &seed); err != nil {
				return first, nil, fmt.Errorf("reading %q: %w", lines.Text(), err)
			}
		case "ok":
			open = false
			seed++
		case "fault":
			return seed, faultIn(rest), nil
		}
	}
	if open || crash != "" {
		return seed, &invariants.Fault{Kind: crashed, Detail: crash}, nil
	}
	return seed, nil, nil
}

// try lives through one history in a process of its own.
func try(ctx context.Context, h *history.History) (*invariants.Fault, error) {
	file, err := os.CreateTemp("", "history-*.yaml")
	if err != nil {
		return nil, fmt.Errorf("writing a history: %w", err)
	}
	defer func() { _ = os.Remove(file.Name()) }()
	if err := errors.Join(file.Close(), history.Write(h, nil, file.Name())); err != nil {
		return nil, err
	}
	output, crash, err := spawn(ctx, "--file", file.Name())
	if err != nil {
		return nil, err
	}
	if crash != "" {
		return &invariants.Fault{Kind: crashed, Detail: crash}, nil
	}
	for line := range strings.Lines(string(output)) {
		if rest, is := strings.CutPrefix(strings.TrimSpace(line), "fault "); is {
			return faultIn(rest), nil
		}
	}
	return nil, nil
}

// faultIn reads what a child says after the word fault: the seed, the kind and the details.
func faultIn(line string) *invariants.Fault {
	_, line, _ = strings.Cut(line, " ")
	kind, detail, _ := strings.Cut(line, ": ")
	return &invariants.Fault{Kind: kind, Detail: detail}
}

// spawn runs this program as a child. crash is the end of what it said if it did not end of its own accord.
func spawn(ctx context.Context, args ...string) (output []byte, crash string, err error) {
	self, err := os.Executable()
	if err != nil {
		return nil, "", fmt.Errorf("finding this program: %w", err)
	}
	var stdout, stderr bytes.Buffer
	cmd := exec.CommandContext(ctx, self, append([]string{"--child"}, args...)...)
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	err = cmd.Run()
	if ctx.Err() != nil {
		return nil, "", ctx.Err()
	}
	var exit *exec.ExitError
	switch {
	case err == nil || errors.As(err, &exit) && exit.ExitCode() == 1:
		return stdout.Bytes(), "", nil
	case errors.As(err, &exit) && !strings.HasPrefix(stderr.String(), "histories: "):
		return stdout.Bytes(), headOf(stderr.String()), nil
	}
	return nil, "", fmt.Errorf("living through %s: %w: %s", strings.Join(args, " "), err, stderr.String())
}

// headOf is the beginning of what a crash says, which names its reason and where it was.
func headOf(text string) string {
	const most = 4000
	text = strings.TrimSpace(text)
	if text == "" {
		return "it said nothing"
	}
	return text[:min(len(text), most)]
}
