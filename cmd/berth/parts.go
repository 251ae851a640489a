package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"slices"
	"strconv"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"berth.dev/berth/pkg/replay"
	"berth.dev/berth/pkg/replay/replayed"
	"berth.dev/berth/pkg/replay/separate"
	"berth.dev/berth/pkg/schedulerconfig"
)

// asPart is the hidden flag with which a comparison runs a replay in a process of its own.
const asPart = "as-part"

// runPart runs a replay for a comparison.
func runPart(ctx context.Context, c *schedulerconfig.Configuration, in replay.Input, options replay.Options,
	out io.Writer) error {
	result, err := runReplay(ctx, c, in, options, func(p *replayed.Progress) func() { return separate.Follow(out, p) })
	if err != nil {
		return err
	}
	return separate.Finish(out, result)
}

// newPool runs up to n replays at once with this executable.
func newPool(atOnce int) (*separate.Pool, error) {
	executable, err := os.Executable()
	if err != nil {
		return nil, fmt.Errorf("finding this executable: %w", err)
	}
	return &separate.Pool{Executable: executable, AtOnce: atOnce, Memory: memoryLimit, Progress: &replayed.Progress{}}, nil
}

// partArguments are those of `berth replay` for one replay of a comparison: the flags about the input that were given,
// the configuration and the seed. Files are those that it has to read in the place of others.
func partArguments(given *pflag.FlagSet, files map[string]string, configuration string, seed int) []string {
	readable := func(path string) string {
		if file, ok := files[path]; ok {
			return file
		}
		return path
	}
	arguments := []string{"replay", "--" + asPart, "--config=" + readable(configuration), "--seed=" + strconv.Itoa(seed)}
	var in replayInput
	about := &cobra.Command{}
	in.addFlags(about)
	in.addModeFlags(about)
	given.Visit(func(f *pflag.Flag) {
		switch value := f.Value.String(); {
		case about.Flags().Lookup(f.Name) == nil:
		case slices.Contains(inputFiles, f.Name):
			arguments = append(arguments, "--"+f.Name+"="+readable(value))
		default:
			arguments = append(arguments, "--"+f.Name+"="+value)
		}
	})
	return arguments
}
