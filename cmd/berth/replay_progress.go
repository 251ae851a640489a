package main

import (
	"fmt"
	"io"
	"os"
	"time"

	"github.com/jedib0t/go-pretty/v6/progress"
	"golang.org/x/term"

	"berth.dev/berth/pkg/plural"
	"berth.dev/berth/pkg/replay"
)

const (
	barEvery  = 200 * time.Millisecond
	lineEvery = 10 * time.Second
)

// showProgress shows how far a replay is: on a terminal a bar with rate and time left, elsewhere a line every ten seconds.
// The function that it returns ends that.
func showProgress(w io.Writer, label string, p *replay.Progress) (stop func()) {
	file, isFile := w.(*os.File)
	if isFile && term.IsTerminal(int(file.Fd())) {
		return showBar(file, label, p)
	}
	return showLines(w, label, p)
}

func showBar(w io.Writer, label string, p *replay.Progress) (stop func()) {
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
	update := func() {
		offered, total := p.Read()
		tracker.UpdateTotal(total)
		tracker.SetValue(offered)
	}
	stopUpdates := every(barEvery, update)
	return func() {
		stopUpdates()
		update()
		tracker.MarkAsDone()
		bar.Stop()
		<-rendered
	}
}

func showLines(w io.Writer, label string, p *replay.Progress) (stop func()) {
	began := time.Now()
	return every(lineEvery, func() {
		offered, total := p.Read()
		elapsed := time.Since(began)
		rate := float64(offered) / elapsed.Seconds()
		left := "unknown"
		if rate > 0 {
			left = (time.Duration(float64(total-offered)/rate) * time.Second).String()
		}
		_, _ = fmt.Fprintf(w, "%s: %d of %s, %.0f pods/s, %s left\n", label, offered, plural.Of(total, "pod"), rate, left)
	})
}
