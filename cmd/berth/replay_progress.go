package main

import (
	"io"

	"berth.dev/berth/pkg/progress"
	"berth.dev/berth/pkg/replay/replayed"
)

// showProgress shows how far a replay is. The function that it returns ends that.
func showProgress(w io.Writer, label string, p *replayed.Progress) (stop func()) {
	return progress.Follow(w, label, p.Read)
}
