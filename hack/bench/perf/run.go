package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"berth.dev/berth/hack/bench/rig"
)

// harness is upstream's benchmark, built with the plugins, and the etcd that it starts. Upstream is the folder of its
// cases.
type harness struct {
	dir, binary, upstream string
}

// build builds both below a folder, and writes the configuration of berth there.
func build(ctx context.Context, dir, upstream string) (*harness, error) {
	h := &harness{dir, filepath.Join(dir, "harness.test"), casesOf(upstream)}
	modfile, err := prepareUpstream(upstream, dir)
	if err != nil {
		return nil, err
	}
	if _, err := goCommand(ctx, "test", "-c", "-modfile", modfile, "-o", h.binary, "./harness"); err != nil {
		return nil, err
	}
	if _, err := goCommand(ctx, "build", "-o", filepath.Join(dir, "bin", "etcd"),
		"go.etcd.io/etcd/server/v3"); err != nil {
		return nil, err
	}
	config, err := berthConfig()
	if err != nil {
		return nil, err
	}
	if err := os.WriteFile(h.config(), config, 0o600); err != nil {
		return nil, fmt.Errorf("writing the configuration: %w", err)
	}
	return h, nil
}

func (h *harness) config() string { return filepath.Join(h.dir, "scheduler-config.yaml") }

// goCommand runs go in the folder of this module.
func goCommand(ctx context.Context, args ...string) (string, error) {
	var out, complaints bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	cmd.Stdout, cmd.Stderr = &out, &complaints
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("running go %s: %w: %s", strings.Join(args, " "), err, tail(complaints.Bytes()))
	}
	return out.String(), nil
}

// run is what one run of a case shows.
type run struct {
	Case      string    `json:"case" row:"case"`
	Contender contender `json:"contender" row:"contender"`
	Repeat    int       `json:"repeat"`
	// PodsPerSecond is the figure that upstream's dashboard shows and its thresholds are of: the mean of what was bound
	// in each second.
	PodsPerSecond float64 `json:"podsPerSecond" column:"pods/s|%.0f"`
	// PodsOverStock is by what it is more than that of stock in the same repeat.
	PodsOverStock       float64 `json:"podsOverStock,omitempty" column:"pods/s ×\nstock|%.2f|optional"`
	PodsPerSecondMedian float64 `json:"podsPerSecondMedian"`
	// Threshold is upstream's, for its own machines; 0 where it has none.
	Threshold float64 `json:"threshold,omitempty" column:"upstream's\nthreshold|%.0f|optional"`
	// The attempts are those that bound a pod, from the beginning of the cycle to the end of the binding.
	AttemptMedianMillis float64 `json:"attemptMedianMillis" column:"attempt,\nmedian ms|%.1f"`
	AttemptP99Millis    float64 `json:"attemptP99Millis" column:"attempt,\np99 ms|%.0f"`
	// Seconds is how long it took to create and to bind the measured pods.
	Seconds float64 `json:"seconds" column:"seconds|%.0f"`
	// CPUSeconds is what the harness and its etcd used from their start to their end: API server, client and the creation
	// of nodes included.
	CPUSeconds float64 `json:"cpuSeconds" column:"CPU of\nall, s|%.0f"`
	// CPUOverStock is by what it is more than that of stock in the same repeat.
	CPUOverStock float64 `json:"cpuOverStock,omitempty" column:"CPU ×\nstock|%.2f|optional"`
	// OtherCores is how many cores were busy on average with what is no part of the benchmark.
	OtherCores float64 `json:"otherCores" column:"other work,\ncores|%.2f"`
}

// measure runs a case once, in a process of its own.
func (h *harness) measure(ctx context.Context, c *perfCase, of contender) (run, error) {
	file, err := c.file(of, h.config())
	if err != nil {
		return run{}, err
	}
	dir, err := os.MkdirTemp(h.dir, "run")
	if err != nil {
		return run{}, fmt.Errorf("making a folder for the run: %w", err)
	}
	defer func() { _ = os.RemoveAll(dir) }()
	cases := filepath.Join(dir, "cases.yaml")
	if err := os.WriteFile(cases, file, 0o600); err != nil {
		return run{}, fmt.Errorf("writing the case: %w", err)
	}
	var used time.Duration
	var failed error
	otherCores, err := rig.OtherCores(func() { used, failed = h.execute(ctx, of, c, dir, cases) })
	if err := errors.Join(failed, err); err != nil {
		return run{}, err
	}
	figures, err := filepath.Glob(filepath.Join(dir, "*.json"))
	if err != nil || len(figures) != 1 {
		return run{}, fmt.Errorf("looking for the figures: the harness has written %d files, want 1", len(figures))
	}
	text, err := os.ReadFile(figures[0])
	if err != nil {
		return run{}, fmt.Errorf("reading the figures: %w", err)
	}
	r, err := parseFigures(text)
	r.Case, r.Contender, r.Threshold, r.OtherCores = c.name, of, c.threshold, otherCores
	r.CPUSeconds = used.Seconds()
	return r, err
}

// execute runs the harness in the folder of the case, and returns the CPU that it and its etcd used.
func (h *harness) execute(ctx context.Context, of contender, c *perfCase, dir, cases string) (time.Duration, error) {
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, h.binary, "-test.run", "^$", "-test.bench", ".", "-test.benchtime", "1x", "-cases",
		cases, "-data-items-dir", dir,
		fmt.Sprintf("-berth=%t", of == berth))
	if *profiles != "" {
		cmd.Args = append(cmd.Args, "-test.cpuprofile",
			filepath.Join(*profiles, fmt.Sprintf("%s-%s.pprof", strings.ReplaceAll(c.name, "/", "-"), of)))
	}
	cmd.Dir = c.topic
	cmd.Stdout, cmd.Stderr = &out, &out
	// Logs go to a file as upstream's do. The check whether caches are changed is off in production, too.
	cmd.Env = append(os.Environ(), "PATH="+filepath.Join(h.dir, "bin")+string(os.PathListSeparator)+os.Getenv("PATH"),
		"TMPDIR="+dir,
		"ARTIFACTS="+dir, "KUBE_CACHE_MUTATION_DETECTOR=false")
	// The harness and its etcd end together.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Run(); err != nil {
		return 0, fmt.Errorf("running the harness: %w: %s", err, tail(out.Bytes()))
	}
	return cmd.ProcessState.UserTime() + cmd.ProcessState.SystemTime(), nil
}

// tail is the end of what a process has said.
func tail(out []byte) string {
	const most = 4000
	return strings.TrimSpace(string(out[max(0, len(out)-most):]))
}

// parseFigures reads what the harness writes for upstream's dashboard.
func parseFigures(text []byte) (run, error) {
	var document struct {
		DataItems []struct {
			Labels map[string]string  `json:"labels"`
			Data   map[string]float64 `json:"data"`
		} `json:"dataItems"`
	}
	if err := json.Unmarshal(text, &document); err != nil {
		return run{}, fmt.Errorf("parsing the figures: %w", err)
	}
	var r run
	for _, item := range document.DataItems {
		switch item.Labels["Metric"] {
		case "SchedulingThroughput":
			r.PodsPerSecond, r.PodsPerSecondMedian = item.Data["Average"], item.Data["Perc50"]
		case "SchedulingDuration":
			r.Seconds = item.Data["Duration"]
		case "scheduler_scheduling_attempt_duration_seconds":
			if item.Labels["result"] == "scheduled" {
				r.AttemptMedianMillis, r.AttemptP99Millis = item.Data["Perc50"], item.Data["Perc99"]
			}
		}
	}
	if r.PodsPerSecond == 0 {
		return run{}, fmt.Errorf(
			"reading the figures: there is no SchedulingThroughput; the case has to take several seconds")
	}
	return r, nil
}
