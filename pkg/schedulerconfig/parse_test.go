package schedulerconfig

import (
	"os"
	"strings"
	"testing"
)

// shipped is the configuration that this distribution ships.
const shipped = "../../manifests/base/scheduler-config.yaml"

func TestBadConfigurations(t *testing.T) {
	t.Parallel()
	for _, file := range []string{"configuration.go", "absent.yaml"} {
		_, err := Load(file)
		if err == nil || !strings.Contains(err.Error(), file) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: the error is not a line with the file's name: %v", file, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	data, err := os.ReadFile(shipped)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(data)
	f.Add([]byte("apiVersion: kubescheduler.config.k8s.io/v1\nkind: KubeSchedulerConfiguration\nprofiles: [{pluginConfig: [{name: GPUAware, args: {strategy: 1}}]}]\n"))
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("f", data)
		if err != nil {
			if !strings.HasPrefix(err.Error(), "f: ") || strings.Contains(err.Error(), "\n") {
				t.Errorf("the error is not a line that begins with the file: %q", err)
			}
			return
		}
		if _, err := c.Profile(""); err != nil {
			t.Error(err)
		}
		c.WithoutSignals()
	})
}
