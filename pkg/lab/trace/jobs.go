package trace

import (
	"bufio"
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"
)

var (
	openbPodColumns  = []string{"name", "cpu_milli", "memory_mib", "num_gpu", "gpu_milli"}
	openbPodOptional = []string{"gpu_spec", "qos", "pod_phase", "creation_time", "deletion_time", "scheduled_time"}
	jobColumns       = []string{"name", "cpu_milli", "memory_mib"}
	jobOptional      = []string{"arrival", "duration", "pods", "gpus", "gpu_milli", "models", "gang", "priority", "spot",
		"namespace", "labels", "run_time", "checkpoint_every"}
	spotValues = []string{"", "tolerate", "require", "avoid"}
)

// ReadJobs reads a trace of jobs and orders it by arrival and name. It recognizes three formats:
//
// - CSV with the columns name,cpu_milli,memory_mib[,arrival,duration,pods,gpus,gpu_milli,models,gang,priority,spot,
// namespace,labels,run_time]: arrival and duration in seconds or as 1h30m, no duration: never ends; cpu, memory and
// GPUs of one pod; gpu_milli the share of its one GPU; models joined by |; gang true or false; spot tolerate, require
// or avoid; labels key=value joined by |; run_time what the pods declare to run; - JSON lines, one object a line with
// the same keys; - the pod list of the openb trace (name,cpu_milli,memory_mib,num_gpu,gpu_milli[,gpu_spec,…]).
//
// file is the name used in errors.
func ReadJobs(r io.Reader, file string) ([]Job, error) {
	buffered := bufio.NewReaderSize(r, 1<<16)
	var jobs []Job
	var err error
	if beginsWithObject(buffered) {
		jobs, err = readJSONLines(buffered, file)
	} else {
		jobs, err = readCSVJobs(buffered, file)
	}
	if err != nil {
		return nil, err
	}
	if len(jobs) == 0 {
		return nil, &Error{File: file, Err: errors.New("there are no jobs in the file")}
	}
	slices.SortStableFunc(jobs, func(a, b Job) int {
		return cmp.Or(cmp.Compare(a.Arrival, b.Arrival), cmp.Compare(a.Name, b.Name))
	})
	return jobs, nil
}

func beginsWithObject(r *bufio.Reader) bool {
	start, _ := r.Peek(4096)
	start = bytes.TrimLeft(bytes.TrimPrefix(start, []byte("\ufeff")), " \t\r\n")
	return len(start) > 0 && start[0] == '{'
}

func readCSVJobs(r io.Reader, file string) ([]Job, error) {
	t, err := openTable(r, file)
	if err != nil {
		return nil, err
	}
	read := readJob
	if _, openb := t.columns["num_gpu"]; openb {
		read = readOpenbPod
		err = t.require(openbPodColumns, openbPodOptional)
	} else {
		err = t.require(jobColumns, jobOptional)
	}
	if err != nil {
		return nil, err
	}
	var jobs collector
	err = t.each(func(row *row) { jobs.read(row, read) })
	return jobs.jobs, err
}

func readJob(r *row) Job {
	j := Job{
		Name:            r.name("name"),
		Arrival:         r.duration("arrival", 0),
		Duration:        r.duration("duration", 0),
		Pods:            int(r.integer("pods", 1, maxPods, 1)),
		CPUMilli:        r.required("cpu_milli", 0, maxCPUMilli),
		MemoryMiB:       r.required("memory_mib", 0, maxMemoryMiB),
		GPUs:            int(r.integer("gpus", 0, maxGPUs, 0)),
		GPUMilli:        int(r.integer("gpu_milli", 1, 1000, 1000)),
		Models:          r.models("models"),
		Gang:            r.boolean("gang"),
		Priority:        int32(r.integer("priority", -1_000_000_000, 1_000_000_000, 0)),
		Spot:            r.text("spot"),
		Namespace:       r.namespace("namespace"),
		Labels:          r.labels("labels"),
		RunTime:         r.duration("run_time", 0),
		CheckpointEvery: r.duration("checkpoint_every", 0),
	}
	if !slices.Contains(spotValues, j.Spot) {
		r.fail("spot", j.Spot, "tolerate, require or avoid")
	}
	checkShare(r, &j)
	return j
}

func readOpenbPod(r *row) Job {
	j := Job{
		Name:      r.name("name"),
		Pods:      1,
		CPUMilli:  r.required("cpu_milli", 0, maxCPUMilli),
		MemoryMiB: r.required("memory_mib", 0, maxMemoryMiB),
		GPUs:      int(r.required("num_gpu", 0, maxGPUs)),
		GPUMilli:  int(r.required("gpu_milli", 0, 1000)),
		Models:    r.models("gpu_spec"),
	}
	checkShare(r, &j)
	created := r.duration("creation_time", 0)
	j.Arrival = created
	if deleted := r.text("deletion_time"); deleted != "" {
		end := r.duration("deletion_time", 0)
		if end < created {
			r.fail("deletion_time", deleted, "a time not before creation_time "+r.text("creation_time"))
		}
		// The run time begins when the pod was scheduled in the original cluster, if that is known.
		start := max(created, min(end, r.duration("scheduled_time", created)))
		j.Duration = max(end-start, time.Second)
	}
	return j
}

func checkShare(r *row, j *Job) {
	if j.GPUs == 0 {
		j.GPUMilli, j.Models = 0, nil
		return
	}
	if j.GPUMilli == 0 || j.GPUs > 1 && j.GPUMilli != 1000 {
		r.fail("gpu_milli", r.text("gpu_milli"), "1000 for a pod of several GPUs, 1 to 1000 for one of one")
	}
}

// collector collects jobs. It refuses a second job of the same name and too many pods.
type collector struct {
	jobs []Job
	seen map[string]bool
	pods int
}

// read adds the job of a row.
func (c *collector) read(row *row, job func(*row) Job) {
	if j := job(row); row.err == nil {
		row.refuse(c.add(j))
	}
}

func (c *collector) add(j Job) error {
	if c.seen == nil {
		c.seen = map[string]bool{}
	}
	if c.seen[j.Name] {
		return fmt.Errorf("job %q is there already", j.Name)
	}
	c.seen[j.Name] = true
	if c.pods += j.Pods; c.pods > 10*maxPods {
		return fmt.Errorf("more than %d pods", 10*maxPods)
	}
	c.jobs = append(c.jobs, j)
	return nil
}

// jobLine is a line of the JSON format; its keys are the columns of the CSV format.
type jobLine map[string]json.RawMessage

func readJSONLines(r io.Reader, file string) ([]Job, error) {
	lines := bufio.NewScanner(r)
	lines.Buffer(make([]byte, 0, 1<<16), maxLine)
	var jobs collector
	line := 0
	for lines.Scan() {
		line++
		text := bytes.TrimSpace(bytes.TrimPrefix(lines.Bytes(), []byte("\ufeff")))
		if len(text) == 0 {
			continue
		}
		row, err := jsonRow(text, file, line)
		if err != nil {
			return nil, &Error{File: file, Line: line, Err: err}
		}
		if jobs.read(row, readJob); row.err != nil {
			return nil, row.err
		}
	}
	if err := lines.Err(); errors.Is(err, bufio.ErrTooLong) {
		return nil, tooLong(file, line+1)
	} else if err != nil {
		return nil, &Error{File: file, Line: line + 1, Err: fmt.Errorf("reading the line: %w", err)}
	}
	return jobs.jobs, nil
}

// jsonRow turns a JSON object into the row that the CSV format would have, so that both are checked by the same rules.
func jsonRow(text []byte, file string, line int) (*row, error) {
	var object jobLine
	if err := json.Unmarshal(text, &object); err != nil {
		return nil, fmt.Errorf("not a JSON object (is the file cut off?): %w", err)
	}
	r := &row{table: &table{file: file, columns: map[string]int{}}, line: line}
	for key, raw := range object {
		if !slices.Contains(jobColumns, key) && !slices.Contains(jobOptional, key) {
			return nil, fmt.Errorf("key %q is unknown; allowed are %s", key,
				strings.Join(append(slices.Clone(jobColumns), jobOptional...), ","))
		}
		value, err := scalar(raw)
		if err != nil {
			return nil, fmt.Errorf("key %q: %w", key, err)
		}
		r.table.columns[key] = len(r.fields)
		r.fields = append(r.fields, value)
	}
	return r, nil
}

// scalar returns the text of a JSON string, number or boolean, or of an array of strings joined by |.
func scalar(raw json.RawMessage) (string, error) {
	switch raw[0] {
	case '"':
		var s string
		err := json.Unmarshal(raw, &s)
		return s, err
	case '[':
		var list []string
		if err := json.Unmarshal(raw, &list); err != nil {
			return "", errors.New("want a list of strings")
		}
		return strings.Join(list, "|"), nil
	case '{':
		return "", errors.New("want a string, a number, true, false or a list of strings")
	case 'n':
		return "", nil
	default:
		return string(raw), nil
	}
}
