package history

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/signals"
)

func prometheusAt(url string) config.Prometheus {
	args := config.PriceSignals{Prometheus: config.Prometheus{URL: url}}
	config.SetDefaultsPriceSignals(&args)
	return args.Prometheus
}

func TestUseIsAskedForByTheNamesOfGPUs(t *testing.T) {
	t.Parallel()
	args := prometheusAt("http://prometheus")
	server, err := signals.NewHistory(&args)
	if err != nil {
		t.Fatal(err)
	}
	q := questions{server, []string{"example.com/accelerator", "other"}}
	for _, want := range []string{"accelerator|other", "example_com_accelerator|other"} {
		if !strings.Contains(q.held(), want) {
			t.Errorf("the query %s does not have %s", q.held(), want)
		}
	}
}

func TestUseThatCannotBeRead(t *testing.T) {
	t.Parallel()
	now := time.Now()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		_, _ = w.Write([]byte(`{"status":"success","data":{"resultType":"vector","result":[]}}`))
	}))
	t.Cleanup(server.Close)
	args := prometheusAt(server.URL)
	for name, query := range map[string]Query{
		"no time":           {From: now, To: now, Step: time.Minute},
		"time that is over": {From: now, To: now.Add(-time.Hour), Step: time.Minute},
		"two years":         {From: now.AddDate(-2, 0, 0), To: now, Step: time.Minute},
		"no step":           {From: now.Add(-time.Hour), To: now},
		"a small step":      {From: now.Add(-time.Hour), To: now, Step: time.Second},
		"half a second":     {From: now.Add(-time.Hour), To: now, Step: 20500 * time.Millisecond},
	} {
		if _, err := Read(t.Context(), &args, query); !errors.Is(err, ErrQuery) {
			t.Errorf("%s: %v, want an error about the query", name, err)
		}
	}
	_, err := Read(t.Context(), &args, Query{From: now.Add(-time.Hour), To: now, Step: time.Minute})
	if err == nil || !strings.Contains(err.Error(), "a vector came instead of a matrix") {
		t.Errorf("an answer of another type: %v", err)
	}
}
