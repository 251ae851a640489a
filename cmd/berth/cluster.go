package main

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"berth.dev/berth/pkg/cluster/access"
	"berth.dev/berth/pkg/cluster/inputs"
	"berth.dev/berth/pkg/explain/subject"
	"berth.dev/berth/pkg/screen/progress"
)

// clusterFlags choose the cluster that a command asks.
type clusterFlags struct{ access.Flags }

func newClusterFlags() clusterFlags { return clusterFlags{access.NewFlags()} }

// in is the same cluster with another namespace.
func (f clusterFlags) in(namespace string) clusterFlags { return clusterFlags{f.In(namespace)} }

// completeTarget completes a kind, then the name of an object of that kind, as KIND NAME or KIND/NAME.
func (f clusterFlags) completeTarget(cmd *cobra.Command, args []string, typed string) ([]string,
	cobra.ShellCompDirective) {
	if len(args) == 0 {
		if strings.Contains(typed, "/") {
			return f.completeJoined(cmd, typed)
		}
		return subject.Kinds(), cobra.ShellCompDirectiveNoFileComp
	}
	resource, ok := subject.Resource(args[0])
	if !ok || len(args) > 1 {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	return f.Names(cmd.Context(), resource, f.Namespace()), cobra.ShellCompDirectiveNoFileComp
}

// completeJoined completes the name in KIND/NAME.
func (f clusterFlags) completeJoined(cmd *cobra.Command, typed string) ([]string, cobra.ShellCompDirective) {
	kind, _, _ := strings.Cut(typed, "/")
	resource, ok := subject.Resource(kind)
	if !ok {
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	names := f.Names(cmd.Context(), resource, f.Namespace())
	for i := range names {
		names[i] = kind + "/" + names[i]
	}
	return names, cobra.ShellCompDirectiveNoFileComp
}

// reader makes a reader of the cluster that shows its progress on w. On a terminal that is one line, which counts the
// objects of a long list; with keep set, one line for each kind stays.
func (f clusterFlags) reader(w io.Writer, keep bool) (*inputs.Reader, error) {
	config, err := f.RESTConfig()
	if err != nil {
		return nil, err
	}
	reader, err := inputs.NewReader(config)
	if err != nil {
		return nil, err
	}
	line, begin := progress.NewLine(w), time.Now()
	reader.Progress = func(resource string, objects int, done bool) {
		text := fmt.Sprintf("%5.1fs  %d %s", time.Since(begin).Seconds(), objects, resource)
		if done && keep {
			line.Keep(text)
		} else {
			line.Show(text)
		}
	}
	return reader, nil
}
