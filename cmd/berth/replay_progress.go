package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"berth.dev/berth/pkg/replay"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// showProgress shows how far a replay is: on a terminal a bar with rate and time left, elsewhere a line every ten seconds.
// The function that it returns ends that.
func showProgress(w io.Writer, label string, p *replay.Progress) (stop func()) {
	done, ended := make(chan struct{}), make(chan struct{})
	file, isFile := w.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) {
		go showBar(file, label, p, done, ended)
	} else {
		go showLines(w, label, p, done, ended)
	}
	return func() {
		close(done)
		<-ended
	}
}

func showBar(w io.Writer, label string, p *replay.Progress, done <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	bar := progress.NewWriter()
	bar.SetOutputWriter(w)
	bar.SetAutoStop(false)
	bar.SetUpdateFrequency(barEvery)
	bar.Style().Visibility.ETA = true
	bar.Style().Visibility.Speed = true
	bar.Style().Options.SpeedSuffix = " pods/s"
	tracker := &progress.Tracker{Message: label}
	bar.AppendTracker(tracker)
	rendered := make(chan struct{})
	go func() {
		defer close(rendered)
		bar.Render()
	}()
	ticker := time.NewTicker(barEvery)
	defer ticker.Stop()
	for running := true; running; {
		select {
		case <-done:
			running = false
		case <-ticker.C:
		}
		offered, total := p.Read()
		tracker.UpdateTotal(total)
		tracker.SetValue(offered)
	}
	tracker.MarkAsDone()
	bar.Stop()
	<-rendered
}

func showLines(w io.Writer, label string, p *replay.Progress, done <-chan struct{}, ended chan<- struct{}) {
	defer close(ended)
	began := time.Now()
	ticker := time.NewTicker(lineEvery)
	defer ticker.Stop()
	for {
		select {
		case <-done:
			return
		case <-ticker.C:
			offered, total := p.Read()
			elapsed := time.Since(began)
			rate := float64(offered) / elapsed.Seconds()
			left := "unknown"
			if rate > 0 {
				left = (time.Duration(float64(total-offered)/rate) * time.Second).String()
			}
			_, _ = fmt.Fprintf(w, "%s: %d of %d pods, %.0f pods/s, %s left\n", label, offered, total, rate, left)
		}
	}
}
