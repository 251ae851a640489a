package command

import (
	"fmt"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
)

// Complete lets a shell complete the values of all flags below a command: by the functions that are given by the names
// of flags, and of those that name files already by their names. What is left is a number, a time or a free text, for
// which nothing is offered, files neither; the same holds for commands without arguments.
func Complete(root *cobra.Command, by map[string]cobra.CompletionFunc) error {
	for _, cmd := range root.Commands() {
		if err := Complete(cmd, by); err != nil {
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
		complete := by[flag.Name]
		if complete == nil {
			complete = cobra.NoFileCompletions
		}
		if err := root.RegisterFlagCompletionFunc(flag.Name, complete); err != nil {
			failure = fmt.Errorf("completing --%s of %s: %w", flag.Name, root.CommandPath(), err)
		}
	})
	return failure
}

// namesFile tells whether a flag is marked as the name of a file or a folder.
func namesFile(flag *pflag.Flag) bool {
	_, file := flag.Annotations[cobra.BashCompFilenameExt]
	_, folder := flag.Annotations[cobra.BashCompSubdirsInDir]
	return file || folder
}
