package config

import (
	"fmt"
	"net/url"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// Prometheus says where and how a background reader queries a server that speaks the Prometheus HTTP API. Secrets are
// given by file, never inline, because the arguments are in a ConfigMap. The files are read again for every query, so
// that a rotated token needs no restart.
type Prometheus struct {
	// URL of the server, http or https, with its path prefix if it has one, without user, query or fragment, such as
	// `http://prometheus.monitoring:9090`. Required.
	URL string `json:"url"`
	// Labels that select the series of this cluster where one server holds the series of several, such as `cluster:
	// eu-1`. Each is an equality on a label of every series that is read. Default none.
	MatchLabels map[string]string `json:"matchLabels,omitempty"`
	// Time between two rounds of queries. From `5s` to `10m`, default `15s` for use and faults of GPUs, `30s` for
	// figures of objectives, `1m` for prices.
	Interval *metav1.Duration `json:"interval,omitempty"`
	// Longest time of one query. From `100ms` to the interval, default `10s`, or the interval if that is shorter.
	Timeout *metav1.Duration `json:"timeout,omitempty"`
	// File with a token that is sent with every query, such as a projected service account token. Not together with
	// `basicAuth`. Default none.
	BearerTokenFile string `json:"bearerTokenFile,omitempty"`
	// User as which every query is made. Not together with `bearerTokenFile`. Default none.
	BasicAuth *BasicAuth `json:"basicAuth,omitempty"`
	// Certificates for a URL of https. Default those of the system.
	TLS *PrometheusTLS `json:"tls,omitempty"`
}

// BasicAuth is a user and a file with the password.
type BasicAuth struct {
	// Name of the user. Required.
	Username string `json:"username"`
	// File with the password. Required.
	PasswordFile string `json:"passwordFile"`
}

// PrometheusTLS says whom to trust and who to be on an https connection.
type PrometheusTLS struct {
	// File with the certificates of the authorities to trust. Default those of the system.
	CAFile string `json:"caFile,omitempty"`
	// File with the client's certificate. Together with `keyFile`; default none.
	CertFile string `json:"certFile,omitempty"`
	// File with the key of the client's certificate. Together with `certFile`; default none.
	KeyFile string `json:"keyFile,omitempty"`
	// Name that the server's certificate must have. Default the host of the URL.
	ServerName string `json:"serverName,omitempty"`
}

const (
	minInterval    = 5 * time.Second
	maxInterval    = 10 * time.Minute
	minTimeout     = 100 * time.Millisecond
	defaultTimeout = 10 * time.Second
)

func setDefaultsPrometheus(p *Prometheus, interval time.Duration) {
	setDefault(&p.Interval, metav1.Duration{Duration: interval})
	setDefault(&p.Timeout, metav1.Duration{Duration: min(defaultTimeout, p.Interval.Duration)})
}

// validatePrometheus expects the defaults to be set.
func validatePrometheus(p *Prometheus, path *field.Path) field.ErrorList {
	errs := validateURL(p.URL, path.Child("url"))
	for name := range p.MatchLabels {
		for _, problem := range notPrometheusLabel(name) {
			errs = append(errs, field.Invalid(path.Child("matchLabels").Key(name), name, problem))
		}
	}
	interval, timeout := p.Interval.Duration, p.Timeout.Duration
	if interval < minInterval || interval > maxInterval {
		errs = append(errs, field.Invalid(path.Child("interval"), interval.String(), "must be from 5s to 10m"))
	}
	if timeout < minTimeout || timeout > interval {
		errs = append(errs, field.Invalid(path.Child("timeout"), timeout.String(),
			fmt.Sprintf("must be from 100ms to the interval (%s)", interval)))
	}
	return append(errs, validateCredentials(p, path)...)
}

func validateURL(raw string, path *field.Path) field.ErrorList {
	const allowed = "must be an http or https URL with a host, without user, query or fragment, such as " +
		"http://prometheus.monitoring:9090"
	if raw == "" {
		return field.ErrorList{field.Required(path, allowed)}
	}
	u, err := url.Parse(raw)
	switch {
	case err != nil:
		return field.ErrorList{field.Invalid(path, raw, allowed)}
	case u.User != nil:
		// The value is not repeated: it holds a password.
		return field.ErrorList{field.Forbidden(path, "must not hold a user or password: use basicAuth")}
	case (u.Scheme != "http" && u.Scheme != "https") || u.Hostname() == "" || u.RawQuery != "" || u.ForceQuery ||
		u.Fragment != "":
		return field.ErrorList{field.Invalid(path, raw, allowed)}
	}
	return nil
}

func validateCredentials(p *Prometheus, path *field.Path) field.ErrorList {
	var errs field.ErrorList
	if auth := p.BasicAuth; auth != nil {
		if p.BearerTokenFile != "" {
			errs = append(errs, field.Forbidden(path.Child("basicAuth"), "must not be set together with bearerTokenFile"))
		}
		if auth.Username == "" {
			errs = append(errs, field.Required(path.Child("basicAuth", "username"), "the user's name"))
		}
		if auth.PasswordFile == "" {
			errs = append(errs, field.Required(path.Child("basicAuth", "passwordFile"), "path of the file with the password"))
		}
	}
	if tls := p.TLS; tls != nil && (tls.CertFile == "") != (tls.KeyFile == "") {
		errs = append(errs, field.Invalid(path.Child("tls"),
			fmt.Sprintf("certFile %q, keyFile %q", tls.CertFile, tls.KeyFile),
			"certFile and keyFile must be set together"))
	}
	return errs
}
