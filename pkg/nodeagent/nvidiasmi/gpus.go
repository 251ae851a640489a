package nvidiasmi

import (
	"cmp"
	"context"
	"encoding/csv"
	"errors"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
)

// maxGPUs is how many GPUs one machine may have.
const maxGPUs = 64

// GPU is one physical GPU.
type GPU struct {
	// Index is nvidia-smi's, in the order of PCI addresses.
	Index int
	UUID  string
	Name  string
	// MemMiB is 0 where the GPU does not tell.
	MemMiB int
	// MIG is set where the GPU is cut into hardware slices.
	MIG bool
	// Fault says why the GPU cannot be used; empty when nothing is wrong.
	Fault string
}

// fields are those of --query-gpu. Driver 580 knows all of them (seen with an H100 and an H200), drivers before 450 do
// not know the last three, and some between them not the last.
var fields = []string{"index", "uuid", "name", "memory.total", "mig.mode.current", "remapped_rows.failure",
	"gpu_recovery_action"}

// known are the numbers of fields that drivers know, those of newer ones first.
var known = []int{7, 6, 4}

const (
	csvFormat = "--format=csv,noheader,nounits"
	// noDevices and unknownField begin what the tool says for want of GPUs, and of a field.
	noDevices, unknownField = "No devices were found", "is not a valid field to query"
)

// GPUs lists the GPUs of the machine in index order.
func (t *Tool) GPUs(ctx context.Context) ([]GPU, error) {
	var text string
	var err error
	for _, n := range known {
		text, err = t.run(ctx, "--query-gpu="+strings.Join(fields[:n], ","), csvFormat)
		if err == nil || !strings.Contains(err.Error(), unknownField) {
			break
		}
	}
	switch {
	case err != nil && strings.Contains(err.Error(), noDevices):
		return nil, nil
	case err != nil:
		return nil, err
	}
	gpus, err := parseGPUs(text)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of nvidia-smi --query-gpu: %w", err)
	}
	return gpus, nil
}

// faults are what stands in the place of a value of a GPU that is broken. Values that the GPU does not have, "[N/A]"
// and "[Not Supported]", are no fault.
var faults = []string{"[GPU is lost]", "[GPU requires reset]", "[Unknown Error]", "ERR!"}

// parseGPUs reads comma-separated values, one line a GPU.
func parseGPUs(text string) ([]GPU, error) {
	if strings.TrimSpace(text) == noDevices {
		return nil, nil
	}
	reader := csv.NewReader(strings.NewReader(text))
	reader.TrimLeadingSpace = true
	rows, err := reader.ReadAll()
	if err != nil {
		return nil, fmt.Errorf("parsing comma-separated values: %w", err)
	}
	if len(rows) == 0 {
		return nil, errors.New("an empty answer")
	}
	if len(rows) > maxGPUs {
		return nil, fmt.Errorf("%d GPUs: at most %d are told apart", len(rows), maxGPUs)
	}
	gpus := make([]GPU, 0, len(rows))
	for _, row := range rows {
		gpu, err := parseGPU(row)
		if err != nil {
			return nil, err
		}
		if slices.ContainsFunc(gpus, func(g GPU) bool { return g.Index == gpu.Index || g.UUID == gpu.UUID }) {
			return nil, fmt.Errorf("GPU %d (%s) is listed twice", gpu.Index, gpu.UUID)
		}
		gpus = append(gpus, gpu)
	}
	slices.SortFunc(gpus, func(a, b GPU) int { return cmp.Compare(a.Index, b.Index) })
	return gpus, nil
}

func parseGPU(row []string) (GPU, error) {
	if !slices.Contains(known, len(row)) {
		return GPU{}, fmt.Errorf("a line of %d values %s: want 4, 6 or 7", len(row), quote(strings.Join(row, ",")))
	}
	for i := range row {
		row[i] = strings.TrimSpace(row[i])
	}
	index, err := strconv.Atoi(row[0])
	if err != nil || index < 0 || index >= maxGPUs {
		return GPU{}, fmt.Errorf("index %s: want a number from 0 to %d", quote(row[0]), maxGPUs-1)
	}
	if !gpuID.MatchString(row[1]) {
		return GPU{}, fmt.Errorf("UUID %s of GPU %d: want one such as GPU-5d5ba0d6-d33d-2b2c-524d-9e3d8d2b8a77",
			quote(row[1]), index)
	}
	gpu := GPU{Index: index, UUID: row[1]}
	for _, value := range row[2:] {
		if slices.Contains(faults, value) {
			gpu.Fault = strings.Trim(value, "[]")
		}
	}
	if gpu.Fault != "" {
		if !slices.Contains(faults, row[2]) {
			gpu.Name = row[2]
		}
		return gpu, nil
	}
	if row[2] == "" || len(row[2]) > 96 {
		return GPU{}, fmt.Errorf("name %s of GPU %d: want 1 to 96 characters", quote(row[2]), index)
	}
	gpu.Name = row[2]
	if row[3] != "[N/A]" && row[3] != "[Not Supported]" {
		mem, err := strconv.ParseUint(row[3], 10, 30)
		if err != nil {
			return GPU{}, fmt.Errorf("memory %s of GPU %d: want a number of MiB", quote(row[3]), index)
		}
		gpu.MemMiB = int(mem)
	}
	if len(row) > 4 {
		gpu.MIG = row[4] == "Enabled"
		if row[5] == "Yes" {
			gpu.Fault = "row remap failure"
		}
	}
	if len(row) > 6 && gpu.Fault == "" && !slices.Contains(noAction, row[6]) {
		if !action.MatchString(row[6]) {
			return GPU{}, fmt.Errorf("recovery action %s of GPU %d: want words", quote(row[6]), index)
		}
		gpu.Fault = "needs recovery: " + row[6]
	}
	return gpu, nil
}

// noAction are the values of a GPU that needs no recovery, or that does not tell. Each other one asks to reset
// the GPU or the machine, or to end what runs first (NVIDIA's GPU Memory Error Management, "Recovery action flag"):
// what starts there may fail.
var noAction = []string{"None", "N/A", "[N/A]", "[Not Supported]", ""}

var (
	action = regexp.MustCompile(`^[A-Za-z0-9 ]{1,40}$`)
	gpuID  = regexp.MustCompile(`^GPU-[0-9a-fA-F-]{8,64}$`)
	// listedGPU and listedSlice are lines of nvidia-smi -L.
	listedGPU   = regexp.MustCompile(`^GPU (\d{1,2}): .*\(UUID: (GPU-[0-9a-fA-F-]{8,64})\)\s*$`)
	listedSlice = regexp.MustCompile(`^\s+MIG .*\(UUID: (MIG-[0-9a-zA-Z/-]{8,96})\)\s*$`)
)

// Slices returns the index of the GPU of each hardware slice, by the slice's UUID.
func (t *Tool) Slices(ctx context.Context) (map[string]int, error) {
	text, err := t.run(ctx, "-L")
	if err != nil {
		return nil, err
	}
	slices, err := parseList(text)
	if err != nil {
		return nil, fmt.Errorf("reading the answer of nvidia-smi -L: %w", err)
	}
	return slices, nil
}

// parseList reads a list of GPUs in which the slices of each follow it.
func parseList(text string) (map[string]int, error) {
	found, index := map[string]int{}, -1
	for line := range strings.Lines(text) {
		line = strings.TrimRight(line, "\r\n")
		if gpu := listedGPU.FindStringSubmatch(line); gpu != nil {
			index, _ = strconv.Atoi(gpu[1]) // two digits
			continue
		}
		if slice := listedSlice.FindStringSubmatch(line); slice != nil {
			if index < 0 {
				return nil, errors.New("a slice before the first GPU")
			}
			found[slice[1]] = index
			continue
		}
		if strings.TrimSpace(line) != "" {
			return nil, fmt.Errorf("line %s: want a GPU or a MIG slice with its UUID", quote(line))
		}
	}
	return found, nil
}
