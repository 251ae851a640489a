package rig

import (
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

// sample is a run of a contender at a size.
type sample struct {
	Size      string `row:"size"`
	Contender string `row:"who"`
	Repeat    int
	Cost      float64 `column:"cost|%.2f"`
	OverStock float64 `column:"× stock|%.2f|optional"`
	Pods      int     `column:"pods|%.0f"`
}

func samples() []sample {
	return []sample{
		{Size: "small", Contender: "stock", Repeat: 1, Cost: 2, OverStock: 1},
		{Size: "small", Contender: "berth", Repeat: 1, Cost: 3, OverStock: 1.5},
		{Size: "small", Contender: "berth", Repeat: 2, Cost: 10, OverStock: 2.5},
		{Size: "small", Contender: "stock", Repeat: 2, Cost: 4, OverStock: 1},
		{Size: "small", Contender: "berth", Repeat: 3, Cost: 4, OverStock: 1.75},
		{Size: "large", Contender: "berth", Repeat: 1, Cost: 7, Pods: 5},
	}
}

// cells are the cells of a printed table, by line.
func cells(text string) [][]string {
	var rows [][]string
	for line := range strings.Lines(text) {
		if parts := strings.Split(strings.TrimSpace(line), "│"); len(parts) > 1 {
			var row []string
			for _, part := range parts[1 : len(parts)-1] {
				row = append(row, strings.TrimSpace(part))
			}
			rows = append(rows, row)
		}
	}
	return rows
}

func TestTableHasARowForEachKeyAndMediansOfItsRuns(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	require.NoError(t, Table(&out, samples()))
	want := [][]string{
		{"size", "who", "cost", "× stock", "pods"},
		{"small", "stock", "3.00 (2.00–4.00)", "1.00 (1.00–1.00)", "0 (0–0)"},
		{"small", "berth", "4.00 (3.00–10.00)", "1.75 (1.50–2.50)", "0 (0–0)"},
		{"large", "berth", "7.00", "-", "5"},
	}
	assert.Equal(t, "cells", want, cells(out.String()))
}
