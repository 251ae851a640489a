package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Complete registers completions for all flags below a command: the functions by the names of flags, except for flags
// that have a completion or are marked as files. Other flags, and commands without arguments, get no completions; the
// default would be files.
func Complete(root *cobra.Command, byName map[string]cobra.CompletionFunc) error {
	for _, cmd := range root.Commands() {
		if err := Complete(cmd, byName); err != nil {
			return err
		}
	}
	if root.ValidArgsFunction == nil && root.HasParent() {
		root.ValidArgsFunction = cobra.NoFileCompletions
	}
	var failure error
	root.LocalFlags().VisitAll(func(flag *pflag.Flag) {
		if failure != nil || flag.NoOptDefVal != "" || namesFile(flag) {
			return
		}
		if _, known := root.GetFlagCompletionFunc(flag.Name); known {
			return
		}
		complete := byName[flag.Name]
		if complete == nil {
			complete = cobra.NoFileCompletions
		}
		if err := root.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
			failure = fmt.Errorf("completing --%s of %s: %w", flag.Name, root.CommandPath(), err)
		}
	})
	return failure
}

// namesFile reports whether a flag is marked as the name of a file or a folder.
func namesFile(flag *pflag.Flag) bool {
	_, file := flag.Annotations[cobra.BashCompFilenameExt]
	_, folder := flag.Annotations[cobra.BashCompSubdirsInDir]
	return file || folder
}
