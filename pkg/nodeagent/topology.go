package nodeagent

import (
	"errors"
	"fmt"
	"regexp"
	"strconv"
	"strings"

	"berth.dev/berth/pkg/gpu"
	"berth.dev/berth/pkg/gpu/gpuview"
)

var (
	// escape is how newer tools underline the header, terminal or not.
	escape = regexp.MustCompile("\x1b\\[[0-9;]*[A-Za-z]")
	column = regexp.MustCompile(`^GPU(\d{1,2})$`)
)

// parseTopology reads the matrix. Its header names the columns: the GPUs come first, then network cards, then
// affinities, whose names have spaces. Rows are named alike; those of network cards and the legends below are passed
// over. It returns the number of GPUs and each pair once.
func parseTopology(text string) (int, []gpuview.Link, error) {
	var gpus []int
	cells := map[[2]int]string{}
	seen := map[int]bool{}
	for line := range strings.Lines(escape.ReplaceAllString(text, "")) {
		words := strings.Fields(line)
		if len(words) == 0 {
			continue
		}
		if gpus == nil {
			for _, word := range words {
				index, ok := columnIndex(word)
				if !ok {
					break
				}
				gpus = append(gpus, index)
			}
			if gpus == nil {
				return 0, nil, fmt.Errorf("first line %s: want the names of GPUs", quote(line))
			}
			continue
		}
		row, ok := columnIndex(words[0])
		if !ok {
			continue
		}
		switch {
		case seen[row]:
			return 0, nil, fmt.Errorf("two rows for GPU %d", row)
		case len(words) <= len(gpus):
			return 0, nil, fmt.Errorf("row of GPU %d has %d cells: want %d", row, len(words)-1, len(gpus))
		}
		seen[row] = true
		for i, at := range gpus {
			cells[[2]int{row, at}] = words[i+1]
		}
	}
	if gpus == nil {
		return 0, nil, errors.New("no matrix")
	}
	pairs, err := pairsOf(gpus, seen, cells)
	return len(gpus), pairs, err
}

// pairsOf checks that the matrix is whole and symmetric.
func pairsOf(gpus []int, rows map[int]bool, cells map[[2]int]string) ([]gpuview.Link, error) {
	var pairs []gpuview.Link
	for i, a := range gpus {
		switch {
		case i > 0 && a <= gpus[i-1]:
			return nil, fmt.Errorf("column GPU%d after GPU%d: want them in order", a, gpus[i-1])
		case !rows[a]:
			return nil, fmt.Errorf("no row for GPU %d", a)
		case cells[[2]int{a, a}] != "X":
			return nil, fmt.Errorf("cell of GPU %d with itself is %q: want X", a, cells[[2]int{a, a}])
		}
		for _, b := range gpus[:i] {
			link := cells[[2]int{b, a}]
			if back := cells[[2]int{a, b}]; back != link {
				return nil, fmt.Errorf("link of GPUs %d and %d is %q one way and %q the other", b, a, link, back)
			}
			if _, err := gpu.ParseLink(link); err != nil {
				return nil, fmt.Errorf("link of GPUs %d and %d: %w", b, a, err)
			}
			pairs = append(pairs, gpuview.Link{A: b, B: a, Name: link})
		}
	}
	if len(rows) != len(gpus) {
		return nil, fmt.Errorf("%d rows of GPUs and %d columns", len(rows), len(gpus))
	}
	return pairs, nil
}

func columnIndex(word string) (int, bool) {
	match := column.FindStringSubmatch(word)
	if match == nil {
		return 0, false
	}
	index, err := strconv.Atoi(match[1])
	return index, err == nil && index < gpuview.MaxGPUs
}
