package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"

	"berth.dev/berth/pkg/starttime"
)

// gpusPerNode is the size of every node. A job of more GPUs is a gang whose members take whole nodes.
const gpusPerNode = 8

// job is one job of a trace. Times are in seconds.
type job struct {
	id          int
	user        string
	submit, run float64
	gpus        int
	start, end  float64
	nodes       []int
	// told is the start that was told first, at toldAt.
	told     starttime.Told
	toldAt   float64
	toldOnce bool
}

// members is the number of whole nodes that a gang needs, 0 for a job that fits on one node.
func (j *job) members() int {
	if j.gpus <= gpusPerNode {
		return 0
	}
	return (j.gpus + gpusPerNode - 1) / gpusPerNode
}

// readTrace reads a trace with the columns submit_s and duration_s, or submit_min and duration_min, and gpus. Jobs
// without GPUs are left out.
func readTrace(path string) ([]job, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a trace: %w", err)
	}
	defer func() { _ = file.Close() }()
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	submit, run, scale := "submit_s", "duration_s", 1.0
	if _, minutes := at["submit_min"]; minutes {
		submit, run, scale = "submit_min", "duration_min", 60
	}
	var jobs []job
	for _, row := range rows[1:] {
		number := func(column string) float64 {
			i, has := at[column]
			if !has {
				return 0
			}
			v, bad := strconv.ParseFloat(row[i], 64)
			if bad != nil && err == nil {
				err = fmt.Errorf("reading column %s of %s: %w", column, path, bad)
			}
			return v
		}
		j := job{id: len(jobs), submit: number(submit) * scale, run: max(number(run)*scale, 1), gpus: int(number("gpus"))}
		if i, has := at["user"]; has {
			j.user = row[i]
		}
		if j.gpus > 0 {
			jobs = append(jobs, j)
		}
	}
	return jobs, err
}
