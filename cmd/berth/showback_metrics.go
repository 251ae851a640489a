package main

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/validation/field"

	"berth.dev/berth/pkg/apis/config"
	"berth.dev/berth/pkg/showback"
	"berth.dev/berth/pkg/showback/history"
)

// showbackMetrics are the flags about Prometheus.
type showbackMetrics struct {
	server   config.GPUSignals
	tls      config.PrometheusTLS
	from, to string
	step     time.Duration
}

func (m *showbackMetrics) addFlags(cmd *cobra.Command) {
	f := cmd.Flags()
	p := &m.server.Prometheus
	f.StringVar(&p.URL, "prometheus", "", "read the use of a cluster from this Prometheus server, instead of a replay")
	f.StringVar(&m.from, "from", "",
		"with --prometheus, the beginning, RFC 3339 or a date (default: 30 days before the end)")
	f.StringVar(&m.to, "to", "", "with --prometheus, the end, RFC 3339 or a date (default: now)")
	f.DurationVar(&m.step, "step", 5*time.Minute, "with --prometheus, the time between two samples, from 15s to 24h")
	f.StringToStringVar(&p.MatchLabels, "match-label", nil,
		"with --prometheus, read only series with this label, as cluster=eu-1; may be repeated")
	f.StringVar(&p.BearerTokenFile, "bearer-token-file", "", "with --prometheus, a file with the token to send")
	f.StringVar(&m.tls.CAFile, "prometheus-ca-file", "", "with --prometheus, a file with the certificates to trust")
	_ = cmd.MarkFlagFilename("bearer-token-file")
	_ = cmd.MarkFlagFilename("prometheus-ca-file")
}

// refuse refuses flags of the other source, which would be ignored.
func (m *showbackMetrics) refuse(given *pflag.FlagSet) error {
	about := &cobra.Command{}
	(&showbackMetrics{}).addFlags(about)
	var err error
	given.Visit(func(f *pflag.Flag) {
		switch asked, ours := m.server.Prometheus.URL != "", about.Flags().Lookup(f.Name) != nil; {
		case err != nil || slices.Contains([]string{"by", "config", "page", "output", "wide"}, f.Name):
		case asked && !ours:
			err = badInput(fmt.Errorf("--%s is for a replay and cannot be combined with --prometheus", f.Name))
		case !asked && ours:
			err = badInput(fmt.Errorf("--%s needs --prometheus", f.Name))
		}
	})
	return err
}

// read is the statement of the metrics.
func (m *showbackMetrics) read(ctx context.Context, by showback.By, resources []string) (*showback.Statement, error) {
	query := history.Query{To: time.Now().Truncate(time.Second), Step: m.step, By: by, Resources: resources}
	var err error
	if m.to != "" {
		if query.To, err = parseTime("to", m.to); err != nil {
			return nil, err
		}
	}
	query.From = query.To.AddDate(0, 0, -30)
	if m.from != "" {
		if query.From, err = parseTime("from", m.from); err != nil {
			return nil, err
		}
	}
	if m.tls != (config.PrometheusTLS{}) {
		m.server.Prometheus.TLS = &m.tls
	}
	config.SetDefaultsGPUSignals(&m.server)
	if errs := config.ValidateGPUSignals(&m.server, nil); len(errs) > 0 {
		return nil, badInput(flagError(errs[0]))
	}
	statement, err := history.Read(ctx, &m.server.Prometheus, query)
	if errors.Is(err, history.ErrQuery) {
		return nil, badInput(err)
	}
	return statement, err
}

// flagError names the flag in the place of the field of a configuration.
func flagError(err *field.Error) error {
	path, _, _ := strings.Cut(err.Field, "[")
	flag := map[string]string{"prometheus.url": "prometheus", "prometheus.matchLabels": "match-label"}[path]
	switch {
	case flag == "":
		return err
	case err.Type == field.ErrorTypeForbidden && flag == "prometheus":
		// A configuration would have basicAuth for it, which has no flag.
		return errors.New("--prometheus: must not hold a user or password: use --bearer-token-file")
	}
	return fmt.Errorf("--%s: %s", flag, err.ErrorBody())
}

func parseTime(flag, text string) (time.Time, error) {
	for _, layout := range []string{time.RFC3339, time.DateOnly} {
		if at, err := time.Parse(layout, text); err == nil {
			return at, nil
		}
	}
	return time.Time{}, badInput(fmt.Errorf(
		"--%s: %q is not allowed; want a time such as 2026-01-05T00:00:00Z or a date such as 2026-01-05", flag, text))
}
