package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/process/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
)

// source says which cluster a question is about, live or from a dump, and by which configuration it is answered.
type source struct {
	cluster         clusterFlags
	dump            string
	schedulerConfig string
}

func newSource() source { return source{cluster: newClusterFlags()} }

func (f *source) addTo(cmd *cobra.Command) {
	f.cluster.AddTo(cmd, true)
	cmd.Flags().StringVar(&f.dump, "dump", "", "file written by berth dump, in the place of a live cluster")
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "",
		"KubeSchedulerConfiguration file, or stock for the default scheduler (default: the one that the cluster's "+
			"scheduler runs with, else the shipped profiles)")
	if err := errors.Join(cmd.MarkFlagFilename("dump"),
		cmd.MarkFlagFilename("scheduler-config", "yaml", "yml", "json")); err != nil {
		panic(err)
	}
}

// configuration is the one that is named, else the one that the cluster's scheduler runs with.
func (f *source) configuration(ctx context.Context, warnings io.Writer) (*schedulerconfig.Configuration, error) {
	switch {
	case f.schedulerConfig != "":
		return loadConfiguration(f.schedulerConfig)
	case f.dump != "":
		return shippedInstead(warnings, errors.New("a dump does not hold the scheduler's configuration"))
	}
	configuration, err := f.cluster.running(ctx, warnings)
	if command.Status(err) == command.StatusBadInput {
		return nil, badInput(fmt.Errorf(
			"%w; --scheduler-config names another, for example a copy of the one with which the scheduler still runs", err))
	}
	return configuration, err
}

// namespace of the pod. A dump has nothing to do with the kubeconfig's context.
func (f *source) namespace() string {
	if f.dump != "" && f.cluster.GivenNamespace() == "" {
		return v1.NamespaceDefault
	}
	return f.cluster.Namespace()
}

// objects reads the cluster and says as of when, and what could not be read.
func (f *source) objects(ctx context.Context, progress io.Writer) (objects []runtime.Object, at time.Time,
	leftOut []string, err error) {
	if f.dump != "" {
		file, err := os.Open(f.dump)
		if err != nil {
			return nil, time.Time{}, nil, badInput(fmt.Errorf("reading the dump: %w", err))
		}
		defer file.Close()
		dump, err := dump.Read(file, f.dump)
		if err != nil {
			return nil, time.Time{}, nil, badInput(err)
		}
		return dump.Objects, dump.Taken, dump.LeftOut, nil
	}
	collector, err := f.cluster.collector(io.Discard)
	if err != nil {
		return nil, time.Time{}, nil, err
	}
	now := time.Now()
	if _, err := collector.Header(ctx, now); err != nil {
		return nil, time.Time{}, nil, err
	}
	leftOut, err = collector.Collect(ctx, func(obj runtime.Object) error {
		objects = append(objects, obj)
		return nil
	})
	for _, kind := range leftOut {
		if strings.Contains(kind, "forbidden") {
			fmt.Fprintf(progress, "left out: %s\n", kind)
		}
	}
	return objects, now, leftOut, err
}
