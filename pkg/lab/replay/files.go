package replay

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/lab/trace"
	"berth.dev/berth/pkg/sandbox"
)

// Files names the files of an input.
type Files struct {
	// Dump is a cluster's dump; Nodes a table of nodes, or nodes as a sandbox takes them; one of them is needed.
	Dump, Nodes string
	// Jobs is a trace of jobs.
	Jobs string
	// Prices is a table of rates for the nodes that have no price.
	Prices string
	// Rebind has the pods of the dump scheduled again.
	Rebind bool
}

// Load reads the files. An error names the file and the line.
func (f Files) Load() (Input, error) {
	switch {
	case f.Dump != "" && f.Nodes != "":
		return Input{}, errors.New("a dump and a table of nodes cannot be combined: the dump has the nodes")
	case f.Dump == "" && f.Nodes == "":
		return Input{}, errors.New("there is no cluster to replay on: name a dump or a table of nodes")
	case f.Nodes != "" && f.Jobs == "":
		return Input{}, errors.New("there is nothing to replay: name a trace of jobs")
	case f.Rebind && f.Dump == "":
		return Input{}, errors.New("there are no pods to schedule again without a dump")
	}
	in := Input{Name: inputName(f.Jobs), RatesName: f.Prices, Rebind: f.Rebind}
	var err error
	if f.Jobs != "" {
		if in.Jobs, err = readFile(f.Jobs, trace.ReadJobs); err != nil {
			return Input{}, err
		}
	}
	if f.Prices != "" {
		if in.Rates, err = readFile(f.Prices, trace.ReadPrices); err != nil {
			return Input{}, err
		}
	}
	if f.Dump == "" {
		err = f.loadNodes(&in)
		return in, err
	}
	dump, err := readFile(f.Dump, dump.Read)
	if err != nil {
		return Input{}, err
	}
	in.Name, in.Objects = inputName(f.Dump), dump.Objects
	if f.Jobs != "" {
		in.Name += " with " + inputName(f.Jobs)
	}
	return in, nil
}

// loadNodes reads the nodes of a table, or nodes as they are in a cluster.
func (f Files) loadNodes(in *Input) error {
	data, err := readFile(f.Nodes, sandbox.ReadNodesFile)
	if err != nil {
		return err
	}
	if holdsObjects(data) {
		nodes, err := sandbox.ParseNodes(f.Nodes, data)
		for _, node := range nodes {
			in.Objects = append(in.Objects, node)
		}
		return err
	}
	in.Nodes, err = trace.ReadNodes(bytes.NewReader(data), f.Nodes)
	in.Shared = sharesGPUs(in.Jobs)
	return err
}

// holdsObjects reports whether a nodes file has objects, in YAML or JSON, instead of a table. The first line of a table
// that is not empty or a comment has its columns.
func holdsObjects(data []byte) bool {
	data = bytes.TrimPrefix(data, []byte("\ufeff"))
	for len(data) > 0 {
		var line []byte
		line, data, _ = bytes.Cut(data, []byte("\n"))
		if line = bytes.TrimSpace(line); len(line) > 0 && line[0] != '#' {
			return bytes.HasPrefix(line, []byte("---")) || bytes.ContainsAny(line, ":{[")
		}
	}
	return false // the reader of tables returns the error
}

func readFile[T any](path string, reader func(io.Reader, string) (T, error)) (T, error) {
	file, err := os.Open(path)
	if err != nil {
		var none T
		return none, fmt.Errorf("reading an input: %w", err)
	}
	defer func() { _ = file.Close() }()
	return reader(file, path)
}

func inputName(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(name))
}
