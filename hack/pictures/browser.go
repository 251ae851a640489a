package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"k8s.io/apimachinery/pkg/util/wait"

	"berth.dev/berth/pkg/sandbox"
	"berth.dev/berth/pkg/sandbox/demo"
)

// screenshotWithin bounds a screenshot, and plotsWithin the wait for the first points of the dashboard's plots.
const screenshotWithin, plotsWithin = time.Minute, time.Minute

// noPlots is what the dashboard says before it has two points.
const noPlots = "The plots of the last hour begin"

// screenshot shows a page in a browser without a window.
func screenshot(ctx context.Context, scratch, url, size string) ([]byte, error) {
	browser := ""
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			browser = path
			break
		}
	}
	if browser == "" {
		return nil, errors.New("finding a browser: there is no chromium, chromium-browser or google-chrome in PATH")
	}
	ctx, cancel := context.WithTimeout(ctx, screenshotWithin)
	defer cancel()
	file := filepath.Join(scratch, "page.png")
	show := exec.CommandContext(ctx, browser, "--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars",
		"--user-data-dir="+filepath.Join(scratch, "browser"), "--window-size="+size, "--timeout=6000",
		"--screenshot="+file, url)
	if output, err := show.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("running %s: %w: %s", browser, err, output)
	}
	data, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the screenshot: %w", err)
	}
	return data, nil
}

// dashboardPicture runs the demo and shows its cluster: as the demo draws it, and in the dashboard.
func dashboardPicture(ctx context.Context, scratch string) (_ map[string][]byte, err error) {
	dir := filepath.Join(scratch, "demo")
	outcome, err := demo.Run(ctx, demo.Options{Dir: dir, Keep: true}, func(string) {})
	if sb, openErr := sandbox.Open(dir); openErr == nil {
		defer func() { err = errors.Join(err, sb.Stop()) }()
	}
	if err != nil {
		return nil, fmt.Errorf("running the demo: %w", err)
	}
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	server := exec.CommandContext(ctx, binary, "dashboard", "--kubeconfig", outcome.Kubeconfig)
	server.Cancel = func() error { return server.Process.Signal(syscall.SIGTERM) }
	address, err := server.StdoutPipe()
	if err != nil {
		return nil, fmt.Errorf("opening a pipe: %w", err)
	}
	if err := server.Start(); err != nil {
		return nil, fmt.Errorf("starting the dashboard: %w", err)
	}
	defer func() {
		_ = server.Cancel()
		_ = server.Wait()
	}()
	lines := bufio.NewScanner(address)
	lines.Scan()
	url := strings.TrimSpace(lines.Text())
	if err := waitForPlots(ctx, url); err != nil {
		return nil, err
	}
	page, err := screenshot(ctx, scratch, url, "1280,1016")
	return map[string][]byte{"demo.svg": []byte(outcome.Map()), "dashboard.png": page}, err
}

func waitForPlots(ctx context.Context, url string) error {
	err := wait.PollUntilContextTimeout(ctx, time.Second, plotsWithin, true, func(ctx context.Context) (bool, error) {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
		if err != nil {
			return false, fmt.Errorf("asking for %q: %w", url, err)
		}
		answer, err := http.DefaultClient.Do(request)
		if err != nil {
			return false, fmt.Errorf("asking for the dashboard: %w", err)
		}
		defer func() { _ = answer.Body.Close() }()
		page, err := io.ReadAll(answer.Body)
		return err == nil && !strings.Contains(string(page), noPlots), err
	})
	if err != nil {
		return fmt.Errorf("waiting for the dashboard's plots: %w", err)
	}
	return nil
}

// comparePicture shows the page of a comparison: the nodes of the demo, and some hours of jobs.
func comparePicture(ctx context.Context, scratch string) (map[string][]byte, error) {
	binary, err := sandbox.FindBinary()
	if err != nil {
		return nil, err
	}
	page := filepath.Join(scratch, "compare.html")
	compare := exec.CommandContext(ctx, binary, "compare", "--a", "stock", "--b", "manifests/base/scheduler-config.yaml",
		"--nodes", "manifests/nodes/demo.yaml", "--jobs", "pkg/replay/testdata/jobs.csv", "--html", page)
	if output, err := compare.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("comparing: %w: %s", err, output)
	}
	picture, err := screenshot(ctx, scratch, "file://"+page, "1280,1080")
	return map[string][]byte{"compare.png": picture}, err
}
