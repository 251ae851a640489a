package config

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
	"sigs.k8s.io/yaml"

	"berth.dev/berth/test/harness/assert"
	"berth.dev/berth/test/harness/require"
)

func TestDefaultsOfSignalsAreValid(t *testing.T) {
	t.Parallel()
	gpu := &GPUSignals{Prometheus: Prometheus{URL: "http://prometheus.monitoring:9090"}}
	SetDefaultsGPUSignals(gpu)
	if errs := validateGPUSignals(gpu, field.NewPath("signals")); len(errs) > 0 {
		t.Errorf("GPU signals: %v", errs)
	}
	prices := &PriceSignals{Prometheus: Prometheus{URL: "https://prometheus.example.com/prefix/"}}
	SetDefaultsPriceSignals(prices)
	if errs := validatePriceSignals(prices, field.NewPath("priceSource")); len(errs) > 0 {
		t.Errorf("prices: %v", errs)
	}
	if got := []time.Duration{gpu.Prometheus.Interval.Duration, prices.Prometheus.Interval.Duration,
		gpu.Prometheus.Timeout.Duration}; !cmp.Equal(got,
		[]time.Duration{15 * time.Second, time.Minute, 10 * time.Second}) {
		t.Errorf("intervals and timeout: %v", got)
	}
	SetDefaultsGPUSignals(nil)
	SetDefaultsPriceSignals(nil)
	if errs := append(validateGPUSignals(nil, nil), validatePriceSignals(nil, nil)...); len(errs) > 0 {
		t.Errorf("signals that are off: %v", errs)
	}
}

func TestDefaultsOfSignalsKeepWhatWasGiven(t *testing.T) {
	t.Parallel()
	given := GPUSignals{
		Prometheus:  Prometheus{URL: "http://p", Interval: &metav1.Duration{Duration: 5 * time.Second}},
		HostLabels:  []string{"kubernetes_node"},
		FatalXIDs:   []int32{},
		FaultWindow: &metav1.Duration{Duration: 2 * time.Hour},
	}
	got := *given.DeepCopy()
	SetDefaultsGPUSignals(&got)
	if got.Prometheus.Timeout.Duration != 5*time.Second {
		t.Errorf("timeout %s, want no more than the interval", got.Prometheus.Timeout.Duration)
	}
	if got.FatalXIDs == nil || len(got.FatalXIDs) != 0 {
		t.Errorf("fatal XIDs %v, want the empty list that was given", got.FatalXIDs)
	}
	if !cmp.Equal(got.HostLabels, given.HostLabels) || got.FaultWindow.Duration != 2*time.Hour {
		t.Errorf("given %+v, got %+v", given, got)
	}
}

func TestBadSignalsAreRefusedWithTheirField(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		yaml string
		want []string
	}{
		"no URL":                        {`prometheus: {}`, []string{"signals.prometheus.url: Required"}},
		"a URL without a scheme":        {`prometheus: {url: "prometheus:9090"}`, []string{`signals.prometheus.url: Invalid value: "prometheus:9090"`}},
		"a URL without a host":          {`prometheus: {url: "http:///x"}`, []string{"signals.prometheus.url: Invalid"}},
		"a URL of another kind":         {`prometheus: {url: "file:///etc/passwd"}`, []string{"signals.prometheus.url: Invalid"}},
		"a URL with a query":            {`prometheus: {url: "http://p?x=1"}`, []string{"signals.prometheus.url: Invalid"}},
		"a URL that cannot be read":     {`prometheus: {url: "http://p:port"}`, []string{"signals.prometheus.url: Invalid"}},
		"a password in the URL":         {`prometheus: {url: "http://me:secret@p"}`, []string{"signals.prometheus.url: Forbidden"}},
		"an interval that is too short": {`prometheus: {url: "http://p", interval: 1s}`, []string{`signals.prometheus.interval: Invalid value: "1s"`}},
		"a negative interval":           {`prometheus: {url: "http://p", interval: -15s}`, []string{"signals.prometheus.interval", "signals.prometheus.timeout"}},
		"a timeout above the interval":  {`prometheus: {url: "http://p", timeout: 16s}`, []string{"signals.prometheus.timeout: Invalid"}},
		"a label that is none":          {`prometheus: {url: "http://p", matchLabels: {"a-b": c}}`, []string{"signals.prometheus.matchLabels[a-b]"}},
		"PromQL in a label's name":      {`prometheus: {url: "http://p", matchLabels: {"a=\"\"}) or (up{x": c}}`, []string{"signals.prometheus.matchLabels["}},
		"two kinds of credentials":      {`prometheus: {url: "http://p", bearerTokenFile: /t, basicAuth: {username: u, passwordFile: /p}}`, []string{"signals.prometheus.basicAuth: Forbidden"}},
		"half a user":                   {`prometheus: {url: "http://p", basicAuth: {username: ""}}`, []string{"basicAuth.username: Required", "basicAuth.passwordFile: Required"}},
		"a certificate without a key":   {`prometheus: {url: "https://p", tls: {certFile: /c}}`, []string{"signals.prometheus.tls: Invalid"}},
		"no host labels":                {`{prometheus: {url: "http://p"}, hostLabels: []}`, []string{"signals.hostLabels: Required"}},
		"a host label twice":            {`{prometheus: {url: "http://p"}, hostLabels: [node, node]}`, []string{"signals.hostLabels[1]: Duplicate"}},
		"a host label that is none":     {`{prometheus: {url: "http://p"}, hostLabels: ["kubernetes.io/hostname"]}`, []string{"signals.hostLabels[0]: Invalid"}},
		"an age below the interval":     {`{prometheus: {url: "http://p"}, maxAge: 10s}`, []string{"signals.maxAge: Invalid"}},
		"an age without bounds":         {`{prometheus: {url: "http://p"}, maxAge: 2h}`, []string{"signals.maxAge: Invalid value: \"2h0m0s\": must be from the interval (15s) to 1h"}},
		"codes that are none":           {`{prometheus: {url: "http://p"}, fatalXIDs: [79, 0, 79]}`, []string{"signals.fatalXIDs[1]: Invalid", "signals.fatalXIDs[2]: Duplicate"}},
		"a window that is too short":    {`{prometheus: {url: "http://p"}, faultWindow: 1s}`, []string{"signals.faultWindow: Invalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args GPUSignals
			require.NoError(t, yaml.UnmarshalStrict([]byte(c.yaml), &args))
			SetDefaultsGPUSignals(&args)
			checkErrors(t, validateGPUSignals(&args, field.NewPath("signals")), c.want)
		})
	}
}

func TestBadPriceSourcesAreRefusedWithTheirField(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		yaml string
		want []string
	}{
		"no URL":                      {`prometheus: {}`, []string{"priceSource.prometheus.url: Required"}},
		"an age below the interval":   {`{prometheus: {url: "http://p"}, maxAge: 30s}`, []string{"priceSource.maxAge: Invalid"}},
		"a price that is good always": {`{prometheus: {url: "http://p"}, maxAge: 9999h}`, []string{"priceSource.maxAge: Invalid"}},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var args PriceSignals
			require.NoError(t, yaml.UnmarshalStrict([]byte(c.yaml), &args))
			SetDefaultsPriceSignals(&args)
			checkErrors(t, validatePriceSignals(&args, field.NewPath("priceSource")), c.want)
		})
	}
}

// checkErrors wants each error to hold the part at its position, and no secret in any.
func checkErrors(t *testing.T, errs field.ErrorList, want []string) {
	t.Helper()
	if len(errs) != len(want) {
		t.Fatalf("errors %v, want %d", errs, len(want))
	}
	for i, err := range errs {
		assert.Contains(t, err.Error(), want[i])
		if strings.Contains(err.Error(), "secret") {
			t.Errorf("error %q tells a secret", err)
		}
	}
}
