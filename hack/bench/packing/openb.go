package packing

import (
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"

	"berth.dev/berth/pkg/lab/trace"
)

var variants = []string{"default", "cpu100", "gpushare40", "multigpu20", "gpuspec10"}

// Openb reads the variants of the openb trace from its folder, each a family.
func Openb(folder string) ([]Family, error) {
	var all []Family
	for _, variant := range variants {
		f, err := openb(folder, variant)
		if err != nil {
			return nil, err
		}
		all = append(all, *f)
	}
	return all, nil
}

// openb reads a variant of the openb trace from its folder. Memory is left out: it is never what a pod lacks there.
func openb(folder, variant string) (*Family, error) {
	nodes, err := read(filepath.Join(folder, "openb_node_list_gpu_node.csv"), trace.ReadNodes)
	if err != nil {
		return nil, err
	}
	jobs, err := read(filepath.Join(folder, "openb_pod_list_"+variant+".csv"), trace.ReadJobs)
	if err != nil {
		return nil, err
	}
	f := &Family{name: "openb " + variant}
	for _, n := range nodes {
		f.shapes = append(f.shapes, shape{name: n.Name, model: n.Model, gpus: n.GPUs, cpuMilli: n.CPUMilli, count: 1})
	}
	index := map[string]int{}
	for _, j := range jobs {
		key := fmt.Sprint(j.CPUMilli, j.GPUs, j.GPUMilli, j.Models)
		at, known := index[key]
		if !known {
			at = len(f.kinds)
			index[key] = at
			f.kinds = append(f.kinds, newKind(j.CPUMilli, j.GPUs, j.GPUMilli, slices.Sorted(slices.Values(j.Models))...))
			f.weights = append(f.weights, 0)
		}
		f.weights[at]++
		f.pods = append(f.pods, at)
	}
	return f, nil
}

// read reads one file of the trace.
func read[T any](path string, parse func(io.Reader, string) ([]T, error)) ([]T, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("reading the trace: %w", err)
	}
	defer file.Close()
	return parse(file, path)
}

// arrivals returns what gives one pod after the other, by the part of all that has come. The pods of a trace come in
// random order, each once, and then, as there are not enough to fill the cluster, drawn at random: the method of the
// trace's authors.
func (f *Family) arrivals(r *rand.Rand) func(at float64) *kind {
	if f.pods == nil {
		return func(at float64) *kind { return f.draw(r, at) }
	}
	order := slices.Clone(f.pods)
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	next := 0
	return func(float64) *kind {
		if next < len(order) {
			next++
			return &f.kinds[order[next-1]]
		}
		return &f.kinds[f.pods[r.IntN(len(f.pods))]]
	}
}
