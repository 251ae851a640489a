package replay

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/price"
	"berth.dev/berth/pkg/trace"
)

// Files names the files of an input.
type Files struct {
	// Dump is a cluster's dump; Nodes a table of nodes; one of them is needed.
	Dump, Nodes string
	// Jobs is a trace of jobs.
	Jobs string
	// Prices is a table of rates for the nodes that have no price.
	Prices string
	// Rebind has the pods of the dump scheduled anew.
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
		return Input{}, errors.New("there are no pods to schedule anew without a dump")
	}
	var jobs []trace.Job
	if f.Jobs != "" {
		var err error
		if jobs, err = read(f.Jobs, trace.ReadJobs); err != nil {
			return Input{}, err
		}
	}
	var prices *price.ModelRates
	if f.Prices != "" {
		var err error
		if prices, err = read(f.Prices, trace.ReadPrices); err != nil {
			return Input{}, err
		}
	}
	if f.Dump != "" {
		return f.loadDump(jobs, prices)
	}
	nodes, err := read(f.Nodes, trace.ReadNodes)
	if err != nil {
		return Input{}, err
	}
	if prices != nil {
		if err := trace.Price(nodes, prices); err != nil {
			return Input{}, fmt.Errorf("%s: %w", f.Prices, err)
		}
	}
	return NewInput(inputName(f.Jobs), nodes, jobs), nil
}

func (f Files) loadDump(jobs []trace.Job, prices *price.ModelRates) (Input, error) {
	dump, err := read(f.Dump, dump.Read)
	if err != nil {
		return Input{}, err
	}
	for _, obj := range dump.Objects {
		if node, ok := obj.(*v1.Node); ok && prices != nil {
			if err := setPrice(node, prices); err != nil {
				return Input{}, fmt.Errorf("%s: %w", f.Prices, err)
			}
		}
	}
	in := Input{Name: inputName(f.Dump), Objects: dump.Objects, Jobs: jobs, Rebind: f.Rebind}
	if f.Jobs != "" {
		in.Name += " with " + inputName(f.Jobs)
	}
	return in, nil
}

func read[T any](path string, reader func(io.Reader, string) (T, error)) (T, error) {
	f, err := os.Open(path)
	if err != nil {
		var none T
		return none, fmt.Errorf("reading an input: %w", err)
	}
	defer func() { _ = f.Close() }()
	return reader(f, path)
}

func inputName(path string) string {
	name := filepath.Base(path)
	return strings.TrimSuffix(name, filepath.Ext(name))
}
