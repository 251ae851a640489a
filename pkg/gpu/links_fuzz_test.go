package gpu

import (
	"strings"
	"testing"
)

// FuzzParseLink reads names of links: NVLink alone is called NV and is better than anything else.
func FuzzParseLink(f *testing.F) {
	for _, s := range []string{"NV1", "NV12", "NV99", "NV100", "NV0", "NV", "NV+1", "NV01", "PIX", "pix", "NODE", "SYS",
		"X"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, name string) {
		link, err := ParseLink(name)
		if err != nil {
			return
		}
		if link.NVLink != strings.HasPrefix(name, "NV") || link.Score < 1 || link.Score > maxLinkScore ||
			link.NVLink != (link.Score > 20) {
			t.Fatalf("%q is %+v", name, link)
		}
	})
}
