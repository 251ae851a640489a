package rig

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestMeasureWritesWhatThereIsEvenIfALaterRunFails(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	file := filepath.Join(t.TempDir(), "figures.json")
	var out strings.Builder
	err := Measure(&out, file, func(context.Context, io.Writer) (any, error) { return []int{1, 2}, refused })
	if !errors.Is(err, refused) {
		t.Errorf("got error %v, want that of the run", err)
	}
	assert.Contains(t, out.String(), "busy with other work")
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	var got struct {
		CPUs       int      `json:"cpus"`
		Command    []string `json:"command"`
		OtherCores *float64 `json:"otherCores"`
		Results    []int    `json:"results"`
	}
	require.NoError(t, json.Unmarshal(text, &got))
	if got.CPUs < 1 || len(got.Command) == 0 || got.OtherCores == nil || len(got.Results) != 2 {
		t.Errorf("the file has %s", text)
	}
}

func TestMeasureSaysWhatFailed(t *testing.T) {
	t.Parallel()
	refused := errors.New("refused")
	file := filepath.Join(t.TempDir(), "missing", "figures.json")
	err := Measure(io.Discard, file, func(context.Context, io.Writer) (any, error) { return 1, refused })
	if !errors.Is(err, refused) || !strings.Contains(err.Error(), file) {
		t.Errorf("got error %v, want one with %s", err, file)
	}
	err = Measure(io.Discard, "", func(context.Context, io.Writer) (any, error) { return nil, refused })
	if !errors.Is(err, refused) {
		t.Errorf("without results: got error %v, want that of the run", err)
	}
}
