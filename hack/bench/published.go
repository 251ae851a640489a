package main

import (
	"encoding/csv"
	"fmt"
	"os"
	"strconv"
)

// published is a job of a published trace. A job of more GPUs than a node has is a gang.
type published struct {
	user                      string
	submitSeconds, runSeconds float64
	gpus                      int
}

// readPublished reads a trace with the columns submit_s and duration_s, or submit_min and duration_min, and gpus;
// user is optional.
func readPublished(path string) ([]published, error) {
	file, err := os.Open(path)
	if err != nil {
		return nil, fmt.Errorf("opening a trace: %w", err)
	}
	defer func() { _ = file.Close() }() // it was only read
	rows, err := csv.NewReader(file).ReadAll()
	if err != nil {
		return nil, fmt.Errorf("reading %s: %w", path, err)
	}
	if len(rows) == 0 {
		return nil, fmt.Errorf("reading %s: it has no line with the names of the columns", path)
	}
	at := map[string]int{}
	for i, name := range rows[0] {
		at[name] = i
	}
	submit, run, scale := "submit_s", "duration_s", 1.0
	if _, minutes := at["submit_min"]; minutes {
		submit, run, scale = "submit_min", "duration_min", 60
	}
	jobs := make([]published, 0, len(rows)-1)
	for _, row := range rows[1:] {
		text := func(column string) string {
			if i, has := at[column]; has {
				return row[i]
			}
			return ""
		}
		number := func(column string) float64 {
			v, bad := strconv.ParseFloat(text(column), 64)
			if bad != nil && err == nil {
				err = fmt.Errorf("reading column %s of %s: %w", column, path, bad)
			}
			return v
		}
		jobs = append(jobs, published{user: text("user"), submitSeconds: number(submit) * scale,
			runSeconds: number(run) * scale, gpus: int(number("gpus"))})
	}
	return jobs, err
}
