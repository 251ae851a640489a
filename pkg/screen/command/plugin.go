package command

import (
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
)

// AsKubectlPlugin adapts a command to the name of its executable. As kubectl-NAME, its help and examples say "kubectl
// NAME". As kubectl_complete-NAME, which kubectl calls to complete the arguments of the plugin, it prints completions.
func AsKubectlPlugin(root *cobra.Command, executable string, args []string) {
	base := filepath.Base(executable)
	plugin, completion := "kubectl-"+root.Name(), "kubectl_complete-"+root.Name()
	if base == completion {
		root.SetArgs(append([]string{cobra.ShellCompRequestCmd}, args...))
	}
	if base != plugin && base != completion {
		return
	}
	root.Annotations = map[string]string{cobra.CommandDisplayNameAnnotation: "kubectl " + root.Name()}
	replaceName(root, root.Name())
}

func replaceName(cmd *cobra.Command, name string) {
	lines := strings.Split(cmd.Example, "\n")
	for i, line := range lines {
		if rest, ok := strings.CutPrefix(line, "  "+name+" "); ok {
			lines[i] = "  kubectl " + name + " " + rest
		}
	}
	cmd.Example = strings.Join(lines, "\n")
	for _, sub := range cmd.Commands() {
		replaceName(sub, name)
	}
}
