package main

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	logsapi "k8s.io/component-base/logs/api/v1"

	"berth.dev/berth/pkg/screen/command"
	"berth.dev/berth/test/harness/require"
)

func TestMain(m *testing.M) {
	command.DropLinkedFlags()
	// The tests run several commands in one process; each sets up logging in the same way. It is done before them, as
	// it is not made to be done while others log.
	logsapi.ReapplyHandling = logsapi.ReapplyHandlingIgnoreUnchanged
	if err := logsapi.ValidateAndApply(logsapi.NewLoggingConfiguration(), nil); err != nil {
		panic(err)
	}
	os.Exit(m.Run())
}

// write writes a file of the test's.
func write(t *testing.T, name, content string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	return path
}

// The cases follow one another: feature gates belong to the process.
func TestFlagsThatCannotBeUsedAreRefused(t *testing.T) {
	const head = "apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\n"
	stock := write(t, "stock.yaml", head)
	misspelt := write(t, "misspelt.yaml",
		head+"profiles:\n  - schedulerName: x\n    pluginConfig: [{name: GPUAware, args: {strategie: Pack}}]\n")
	for name, tc := range map[string]struct {
		args []string
		want string
	}{
		"no configuration":                  {[]string{}, "--config is not given"},
		"an argument":                       {[]string{"x"}, "unknown command"},
		"a certificate without a key":       {[]string{"--config=c", "--tls-cert-file=x"}, "want both or neither"},
		"authorities without TLS":           {[]string{"--config=c", "--client-ca-file=x"}, "without --tls-cert-file"},
		"names without authorities":         {[]string{"--config=c", "--client-name=x"}, "without --client-ca-file"},
		"an address that is none":           {[]string{"--config=c", "--listen=8888"}, `--listen is "8888"`},
		"plain HTTP for all":                {[]string{"--config=c", "--listen=:8888"}, "which other machines reach"},
		"a configuration that is not there": {[]string{"--config=/nowhere"}, "/nowhere"},
		"a misspelt argument":               {[]string{"--config=" + misspelt}, "strategie"},
		"a profile that is not there":       {[]string{"--config=" + stock, "--profile=mine"}, `there is no profile "mine"; it has default-scheduler`},
	} {
		t.Run(name, func(t *testing.T) {
			cmd := newCommand()
			cmd.SetArgs(tc.args)
			cmd.SetOut(io.Discard)
			var said strings.Builder
			if status := command.Run(cmd, &said); status != command.StatusBadInput || !strings.Contains(said.String(), tc.want) {
				t.Errorf("exit status %d, it says %q, want 2 and %q", status, said.String(), tc.want)
			}
		})
	}
}
