package rig

import (
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

type named string

func (n named) Describe() (name, description string) { return string(n), "" }

func TestChoose(t *testing.T) {
	t.Parallel()
	all := []named{"stock", "berth", "gpu-aware"}
	tests := []struct {
		name, text, wantErr string
		want                []named
	}{
		{name: "in the order in which they are named", text: "berth,stock", want: []named{"berth", "stock"}},
		{name: "none", text: ""},
		{name: "an unknown one is refused with those that there are", text: "fast",
			wantErr: `"fast" is unknown; want some of stock, berth, gpu-aware`},
		{name: "one that is named twice is refused", text: "stock,stock", wantErr: `"stock" is named twice`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := choose(tt.text, all)
			if tt.wantErr != "" {
				if err == nil || !strings.Contains(err.Error(), tt.wantErr) {
					t.Errorf("got error %v, want one with %q", err, tt.wantErr)
				}
				return
			}
			if diff := cmp.Diff(tt.want, got); diff != "" || err != nil {
				t.Errorf("error %v; chosen (-want +got):\n%s", err, diff)
			}
		})
	}
}

func TestAListStopsAtWhatItCannotParse(t *testing.T) {
	t.Parallel()
	if got, err := parseList("1,2", strconv.Atoi); err != nil || !cmp.Equal(got, []int{1, 2}) {
		t.Errorf("got %v and error %v, want 1 and 2", got, err)
	}
	if _, err := parseList("1,x", strconv.Atoi); err == nil || !strings.Contains(err.Error(), `"x"`) {
		t.Errorf("got error %v, want one that names x", err)
	}
}
