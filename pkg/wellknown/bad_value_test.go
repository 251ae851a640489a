package wellknown

import (
	"strings"
	"testing"
)

func TestBadValueNamesObjectKeyValueAndWhatIsAllowed(t *testing.T) {
	t.Parallel()
	b := &BadValue{Object: "node", Kind: "annotation", Key: PricePerHourKey, Value: "$3",
		Allowed: "a decimal number of dollars"}
	for _, part := range []string{"node annotation", PricePerHourKey, `"$3"`, "decimal number of dollars"} {
		if !strings.Contains(b.Error(), part) {
			t.Errorf("message %q does not say %q", b.Error(), part)
		}
	}
	b.Value = strings.Repeat("9", 100_000)
	if len(b.Error()) > 500 {
		t.Errorf("message repeats a huge value: %d bytes", len(b.Error()))
	}
}
