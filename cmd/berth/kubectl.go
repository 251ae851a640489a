package main

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// Names under which kubectl finds a plugin and its completion.
const (
	kubectlPlugin     = "kubectl-berth"
	kubectlCompletion = "kubectl_complete-berth"
)

// underName makes the command speak of itself by the name that it was called by: as a plugin of kubectl its help and
// examples say `kubectl berth`, and as the completion that kubectl looks for it completes.
func underName(root *cobra.Command, executable string, args []string) {
	base := filepath.Base(executable)
	if base == kubectlCompletion {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	}
	if base != kubectlPlugin && base != kubectlCompletion {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl berth"}
	replaceName(root)
}

func replaceName(cmd *cobra.Command) {
	lines := strings.Split(cmd.Example, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "  berth "); ok {
			lines[i] = "  kubectl berth " + rest
		}
	}
	cmd.Example = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		replaceName(sub)
	}
}
