package main

import (
	"encoding/csv"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// openb reads a variant of the openb trace from its folder. Memory is left out: it is never what a pod lacks there.
func openb(folder, variant string) (*family, error) {
	f := &family{name: "openb " + variant}
	err := eachRow(filepath.Join(folder, "openb_node_list_gpu_node.csv"), func(row map[string]string) error {
		gpus, err := strconv.Atoi(row["gpu"])
		if err != nil {
			return err
		}
		cpu, err := strconv.Atoi(row["cpu_milli"])
		if err != nil {
			return err
		}
		f.shapes = append(f.shapes, shape{name: row["sn"], model: row["model"], gpus: gpus, cpuMilli: int64(cpu), count: 1})
		return nil
	})
	if err != nil {
		return nil, err
	}
	index := map[string]int{}
	err = eachRow(filepath.Join(folder, "openb_pod_list_"+variant+".csv"), func(row map[string]string) error {
		var numbers [3]int
		for i, column := range []string{"cpu_milli", "num_gpu", "gpu_milli"} {
			var err error
			if numbers[i], err = strconv.Atoi(row[column]); err != nil {
				return err
			}
		}
		key := fmt.Sprint(numbers, row["gpu_spec"])
		at, known := index[key]
		if !known {
			var models []string
			if row["gpu_spec"] != "" {
				models = strings.Split(row["gpu_spec"], "|")
				slices.Sort(models)
			}
			at = len(f.kinds)
			index[key] = at
			f.kinds = append(f.kinds, newKind(int64(numbers[0]), numbers[1], numbers[2], models...))
			f.weights = append(f.weights, 0)
		}
		f.weights[at]++
		f.pods = append(f.pods, at)
		return nil
	})
	return f, err
}

// eachRow calls do with each row of a CSV file, by column.
func eachRow(path string, do func(map[string]string) error) error {
	file, err := os.Open(path)
	if err != nil {
		return fmt.Errorf("reading the trace: %w", err)
	}
	defer file.Close()
	records, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return fmt.Errorf("reading %s: %w", path, err)
	}
	for n, record := range records {
		if n == 0 {
			continue
		}
		row := make(map[string]string, len(record))
		for i, value := range record {
			row[records[0][i]] = value
		}
		if err := do(row); err != nil {
			return fmt.Errorf("reading %s, line %d: %w", path, n+1, err)
		}
	}
	return nil
}

// arrivals returns what gives one pod after the other. The pods of a trace come in random order, each once, and then,
// as there are not enough to fill the cluster, drawn at random: the method of the trace's authors.
func (f *family) arrivals(r *rand.Rand) func() *kind {
	if f.pods == nil {
		return func() *kind { return f.draw(r) }
	}
	order := slices.Clone(f.pods)
	r.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	at := 0
	return func() *kind {
		if at < len(order) {
			at++
			return &f.kinds[order[at-1]]
		}
		return &f.kinds[f.pods[r.IntN(len(f.pods))]]
	}
}
