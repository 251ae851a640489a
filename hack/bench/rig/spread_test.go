package rig

import (
	"fmt"
	"testing"

	"berth.dev/berth/test/harness/assert"
)

func TestInTurn(t *testing.T) {
	t.Parallel()
	var got []string
	for repeat, c := range InTurn([]string{"a", "b", "c"}, 4) {
		got = append(got, fmt.Sprint(repeat, c))
	}
	want := []string{"1a", "1b", "1c", "2b", "2c", "2a", "3c", "3a", "3b", "4a", "4b", "4c"}
	assert.Equal(t, "order", want, got)
}
