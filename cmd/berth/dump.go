package main

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/runtime"

	"berth.dev/berth/pkg/dump"
	"berth.dev/berth/pkg/plural"
)

func newDumpCommand() *cobra.Command {
	var file string
	var hashNames bool
	cluster := newClusterFlags()
	cmd := &cobra.Command{
		Use:   "dump",
		Short: "Write a snapshot of a live cluster, for replay and explain",
		Long: `Write what a scheduler reads of a cluster into one compressed file: nodes, pods, PodGroups, priority classes,
namespaces, disruption budgets, volumes, claims, storage and CSI objects, device classes, slices and claims, and of
services and replica sets the selectors; of Jobs, JobSets and other controllers of gangs how many pods start together.
It only lists, so read-only rights are enough; what the server does not serve or you may not list is left out and said
so (without nodes and pods there is no dump).

Never in it: Secrets, ConfigMaps, environment variables, commands, arguments, volumes that name secrets, parameters
of drivers, and annotations other than those that decide about placement. What is kept is copied field by field.

--hash-names replaces the names of objects, nodes, namespaces and images, the UUIDs of devices and the values of labels,
taints and selectors by hashes with a random key that is kept nowhere, so that references hold and guesses cannot be
tried. Addresses of host ports are left out. Labels that describe hardware, price, zone or rack keep their values; keys
of labels and taints, names of resources, drivers and scheduler profiles, and numbers stay as they are. A resource that
is named after a device class follows the name of the class.

The file is gzip-compressed JSON lines (zcat shows them): a header with the format's version, an object a line, and a
last line that counts them. It is replaced only when the dump is complete.

Exit status: 0 when the file is complete, 1 otherwise.`,
		Example: `  berth dump --file cluster.dump

  # From another context, to be given away
  berth dump --context production --hash-names --file cluster.dump

  # What is in it, by kind
  zcat cluster.dump | jq -r .kind | sort | uniq -c`,
		Args:              cobra.NoArgs,
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return takeDump(cmd.Context(), cluster, file, hashNames, cmd.OutOrStdout(), cmd.ErrOrStderr())
		},
	}
	cluster.addTo(cmd, false)
	cmd.Flags().StringVar(&file, "file", "", "file to write; - is standard output")
	cmd.Flags().BoolVar(&hashNames, "hash-names", false, "replace names by hashes")
	if err := errors.Join(cmd.MarkFlagRequired("file"), cmd.MarkFlagFilename("file")); err != nil {
		panic(err)
	}
	return cmd
}

func takeDump(ctx context.Context, cluster clusterFlags, file string, hashNames bool, out, progress io.Writer) error {
	collector, err := cluster.collector(progress)
	if err != nil {
		return err
	}
	if file == "-" {
		_, _, err := writeDump(ctx, collector, hashNames, out)
		return err
	}
	partial, err := os.CreateTemp(filepath.Dir(file), filepath.Base(file)+".partial-*")
	if err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	defer os.Remove(partial.Name()) //nolint:errcheck // gone already when the dump is complete
	objects, leftOut, err := writeDump(ctx, collector, hashNames, partial)
	if err = errors.Join(err, partial.Close()); err != nil {
		return err
	}
	if err := os.Rename(partial.Name(), file); err != nil {
		return fmt.Errorf("writing the dump: %w", err)
	}
	for _, kind := range leftOut {
		fmt.Fprintf(progress, "left out: %s\n", kind)
	}
	info, err := os.Stat(file)
	if err != nil {
		return fmt.Errorf("reading back the dump: %w", err)
	}
	fmt.Fprintf(progress, "%s: %s, %d KiB\n", file, plural.Of(objects, "object"), (info.Size()+1023)/1024)
	return nil
}

func writeDump(ctx context.Context, collector *dump.Collector, hashNames bool, out io.Writer) (objects int, leftOut []string, err error) {
	header, err := collector.Header(time.Now())
	if err != nil {
		return 0, nil, err
	}
	header.NamesHashed = hashNames
	writer, err := dump.NewWriter(out, header)
	if err != nil {
		return 0, nil, err
	}
	add := writer.Add
	if hashNames {
		key := make([]byte, 32)
		if _, err := rand.Read(key); err != nil {
			return 0, nil, fmt.Errorf("making a key: %w", err)
		}
		hasher := dump.NewNameHasher(key)
		add = func(obj runtime.Object) error {
			hashed, err := hasher.Hash(obj)
			if err != nil {
				return err
			}
			return writer.Add(hashed)
		}
	}
	leftOut, err = collector.Collect(ctx, func(obj runtime.Object) error {
		objects++
		return add(obj)
	})
	if err != nil {
		return objects, leftOut, err
	}
	return objects, leftOut, writer.Close(leftOut)
}
