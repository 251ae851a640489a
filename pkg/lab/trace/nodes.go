package trace

import (
	"errors"
	"fmt"
	"io"
	"strconv"
)

var (
	openbNodeColumns = []string{"sn", "cpu_milli", "memory_mib", "gpu", "model"}
	nodeColumns      = []string{"name", "cpu_milli", "memory_mib"}
	nodeOptional     = []string{"gpus", "model", "count", "dollars_per_hour", "spot", "rack", "zone"}
)

// ReadNodes reads a table of nodes: a CSV file with the columns
//
//	name,cpu_milli,memory_mib[,gpus,model,count,dollars_per_hour,spot,rack,zone]
//
// where count makes that many nodes name-0, name-1, … of a row, or the node list of the openb trace
// (sn,cpu_milli,memory_mib,gpu,model). file is the name used in errors.
func ReadNodes(r io.Reader, file string) ([]Node, error) {
	t, err := openTable(r, file)
	if err != nil {
		return nil, err
	}
	read := readNode
	if _, openb := t.columns["sn"]; openb {
		read = readOpenbNode
		err = t.require(openbNodeColumns, nil)
	} else {
		err = t.require(nodeColumns, nodeOptional)
	}
	if err != nil {
		return nil, err
	}
	var nodes []Node
	seen := map[string]int{}
	err = t.each(func(row *row) {
		read(row, func(n Node) {
			if first, double := seen[n.Name]; double {
				row.refuse(fmt.Errorf("node %q is there already in line %d", n.Name, first))
			}
			seen[n.Name] = row.line
			nodes = append(nodes, n)
		})
		if len(nodes) > maxCount {
			row.refuse(fmt.Errorf("more than %d nodes", maxCount))
		}
	})
	if err != nil {
		return nil, err
	}
	if len(nodes) == 0 {
		return nil, &Error{File: file, Err: errors.New("there are no nodes in the file")}
	}
	return nodes, nil
}

func readOpenbNode(r *row, add func(Node)) {
	n := Node{
		Name:      r.name("sn"),
		CPUMilli:  r.required("cpu_milli", 1, maxCPUMilli),
		MemoryMiB: r.required("memory_mib", 1, maxMemoryMiB),
		GPUs:      int(r.required("gpu", 0, maxGPUs)),
		Model:     r.label("model"),
	}
	checkModel(r, &n)
	add(n)
}

func readNode(r *row, add func(Node)) {
	n := Node{
		Name:                r.name("name"),
		CPUMilli:            r.required("cpu_milli", 1, maxCPUMilli),
		MemoryMiB:           r.required("memory_mib", 1, maxMemoryMiB),
		GPUs:                int(r.integer("gpus", 0, maxGPUs, 0)),
		Model:               r.label("model"),
		MicroDollarsPerHour: int64(r.dollarsPerHour()),
		Spot:                r.boolean("spot"),
		Rack:                r.label("rack"),
		Zone:                r.label("zone"),
	}
	checkModel(r, &n)
	count := r.integer("count", 1, maxCount, 0)
	if count == 0 || r.err != nil {
		add(n)
		return
	}
	base := n.Name
	for i := range count {
		n.Name = base + "-" + strconv.FormatInt(i, 10)
		add(n)
	}
}

func checkModel(r *row, n *Node) {
	if n.GPUs > 0 && n.Model == "" {
		r.fail("model", "", "the GPU product of a node that has GPUs")
	}
	if n.GPUs == 0 {
		n.Model = ""
	}
}
