package main

import (
	"testing"

	"berth.dev/berth/test/harness/leak"
)

func TestMain(m *testing.M) {
	leak.Main(m)
}
