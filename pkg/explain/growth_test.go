package explain

import (
	"strings"
	"testing"

	"berth.dev/berth/pkg/tables"
	"berth.dev/berth/pkg/wellknown"
)

func TestAGangSaysByWhatStepsItGrows(t *testing.T) {
	t.Parallel()
	for size, want := range map[string]string{
		"double": "beyond that, it runs with twice as many members, four times, eight times and so on",
		"4":      "beyond that, it grows by 4 members at a time",
	} {
		t.Run(size, func(t *testing.T) {
			t.Parallel()
			first, objects := inRacks(map[string]string{wellknown.GrowByKey: size}, true)
			e := ask(t, first, objects...)
			if e.Gang == nil || string(e.Gang.GrowsBy) != size {
				t.Fatalf("the gang is %+v, want one that grows by %s", e.Gang, size)
			}
			if page := shown(t, e, tables.Screen{Width: 120}, 0); !strings.Contains(page, want) {
				t.Errorf("the page does not say %q:\n%s", want, page)
			}
		})
	}
}
