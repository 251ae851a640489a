package signals

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"
)

func TestUseIsAskedForByTheNamesOfGPUs(t *testing.T) {
	t.Parallel()
	q := newQueries(nil, nil)
	q.resources = []string{"example.com/accelerator", "other"}
	for _, want := range []string{"accelerator|other", "example_com_accelerator|other"} {
		if !strings.Contains(q.held(), want) {
			t.Errorf("the query %s does not have %s", q.held(), want)
		}
	}
}

func TestUseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		answer(200, `{"status":"success","data":{"resultType":"vector","result":[]}}`)(w, r)
	}))
	t.Cleanup(server.Close)
	args := gpuArgs(server.URL).Prometheus
	for name, query := range map[string]UseQuery{
		"no time":           {From: now, To: now, Step: time.Minute},
		"time that is over": {From: now, To: now.Add(-time.Hour), Step: time.Minute},
		"two years":         {From: now.AddDate(-2, 0, 0), To: now, Step: time.Minute},
		"no step":           {From: now.Add(-time.Hour), To: now},
		"a small step":      {From: now.Add(-time.Hour), To: now, Step: time.Second},
		"half a second":     {From: now.Add(-time.Hour), To: now, Step: 20500 * time.Millisecond},
	} {
		if _, err := ReadUse(t.Context(), &args, query); !errors.Is(err, ErrUseQuery) {
			t.Errorf("%s: %v, want an error about the query", name, err)
		}
	}
	_, err := ReadUse(t.Context(), &args, UseQuery{From: now.Add(-time.Hour), To: now, Step: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "a vector came instead of a matrix") {
		t.Errorf("an answer of another type: %v", err)
	}
}
