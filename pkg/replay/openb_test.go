package replay

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"testing"

	"berth.dev/berth/pkg/trace"
)

// TestOpenb measures the openb trace in arrival order. It is skipped where the data is not at hand.
func TestOpenb(t *testing.T) {
	dir := os.Getenv("OPENB_DIR")
	if dir == "" {
		t.Skip("OPENB_DIR is not set: it names the folder with the openb trace")
	}
	nodes, err := openFile(filepath.Join(dir, "openb_node_list_gpu_node.csv"), trace.ReadNodes)
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := openFile(filepath.Join(dir, "openb_pod_list_default.csv"), trace.ReadJobs)
	if err != nil {
		t.Fatal(err)
	}
	name := os.Getenv("OPENB_CONFIG")
	if name == "" {
		name = Stock
	}
	config, err := LoadConfiguration(name)
	if err != nil {
		t.Fatal(err)
	}
	mode := Mode(os.Getenv("OPENB_MODE"))
	if mode == "" {
		mode = ArrivalOrder
	}
	load, _ := strconv.Atoi(os.Getenv("OPENB_LOAD"))
	r, err := Run(context.Background(), config, NewInput("openb", nodes, jobs), Options{Mode: mode, Seed: 42, Load: int64(load), Profile: os.Getenv("OPENB_PROFILE")})
	if err != nil {
		t.Fatal(err)
	}
	r.Placements, r.Map, r.Samples = nil, nil, nil
	fmt.Printf("%+v\n", *r)
}

func openFile[T any](path string, read func(io.Reader, string) (T, error)) (T, error) {
	var zero T
	f, err := os.Open(path)
	if err != nil {
		return zero, err
	}
	defer f.Close()
	return read(f, path)
}
