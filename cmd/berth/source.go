package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"
	v1 "k8s.io/api/core/v1"

	"berth.dev/berth/pkg/cluster/dump"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/cluster/overview"
	"berth.dev/berth/pkg/explain/subject"
	"berth.dev/berth/pkg/output"
	"berth.dev/berth/pkg/schedulerconfig"
	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/pkg/screen/progress"
	"berth.dev/berth/pkg/screen/tables"
)

// source is the cluster that a command is about, live or from a dump, with the scheduler configuration to use.
type source struct {
	cluster         clusterFlags
	dump            string
	schedulerConfig string
	// reader watches the cluster; nil unless watch was called.
	reader *inputs.Reader
}

func newSource() source { return source{cluster: newClusterFlags()} }

func (f *source) addTo(cmd *cobra.Command) {
	f.cluster.AddTo(cmd, true)
	cmd.Flags().StringVar(&f.dump, "dump", "", "file written by berth dump, instead of a live cluster")
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "",
		"KubeSchedulerConfiguration file, or stock for the default scheduler (default: the one that the cluster's "+
			"scheduler runs with, else the shipped profiles)")
}

// configuration is the one of the flag, else the one that the cluster's scheduler runs with.
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

// namespace of the pod. With a dump, the namespace of the kubeconfig's context does not count.
func (f *source) namespace() string {
	if f.dump != "" && f.cluster.GivenNamespace() == "" {
		return v1.NamespaceDefault
	}
	return f.cluster.Namespace()
}

// read reads the cluster as it is now, or as it was when the dump was taken.
func (f *source) read(ctx context.Context, messages io.Writer) (*dump.Dump, error) {
	if f.dump != "" {
		file, err := os.Open(f.dump)
		if err != nil {
			return nil, badInput(fmt.Errorf("reading the dump: %w", err))
		}
		defer file.Close()
		dumped, err := dump.Read(file, f.dump)
		return dumped, badInput(err)
	}
	reader := f.reader
	if reader == nil {
		var err error
		if reader, err = f.cluster.reader(io.Discard, false); err != nil {
			return nil, err
		}
	}
	cluster, err := dump.Of(ctx, reader)
	for _, kind := range forbidden(cluster) {
		fmt.Fprintf(messages, "left out: %s\n", kind)
	}
	return cluster, err
}

// forbidden are the kinds that the cluster has and the user may not list.
func forbidden(cluster *dump.Dump) (kinds []string) {
	for _, kind := range cluster.LeftOut {
		if strings.Contains(kind, "forbidden") {
			kinds = append(kinds, kind)
		}
	}
	return kinds
}

// addWatchTo adds the flags of a command that shows a whole cluster.
func (f *source) addWatchTo(cmd *cobra.Command) {
	f.cluster.AddTo(cmd, false)
	cmd.Flags().StringVar(&f.schedulerConfig, "scheduler-config", "",
		"KubeSchedulerConfiguration file with the prices, the names of GPUs and the levels of the network (default: the "+
			"one that the cluster's scheduler runs with, else the shipped profiles)")
}

// watch reads the cluster and watches it until ctx ends. It also returns the configuration with the names of GPUs.
func (f *source) watch(ctx context.Context, messages io.Writer) (*overview.Store, *schedulerconfig.Configuration,
	error) {
	silenceLogs()
	configuration, err := f.configuration(ctx, messages)
	if err != nil {
		return nil, nil, err
	}
	prices, rates, err := configuration.Prices("")
	if err != nil {
		return nil, nil, badInput(configuration.Invalid(err))
	}
	store := overview.NewStore(configuration.GPUKeys(""), overview.Pricing{Of: prices, Rates: rates},
		configuration.NetworkLevels())
	if f.reader, err = f.cluster.reader(messages, false); err != nil {
		return nil, nil, err
	}
	err = store.Watch(ctx, f.reader)
	f.reader.Progress = nil // the view that follows uses the whole screen
	progress.NewLine(messages).Clear()
	return store, configuration, err
}

// explain returns what "berth explain" prints of the watched cluster, in a table of that width.
func (f *source) explain(ctx context.Context, kind, namespace, name string, width int) (string, error) {
	flags := &explainFlags{source: *f, top: 10, format: output.Table}
	flags.cluster = f.cluster.in(namespace)
	var out, warnings bytes.Buffer
	err := flags.run(ctx, subject.Target{Kind: kind, Name: name},
		tables.Output{Writer: &out, Screen: tables.Screen{Width: width}}, &warnings)
	if err != nil && ctx.Err() == nil {
		return "", errors.New(warnings.String() + err.Error())
	}
	return warnings.String() + out.String(), err
}
