package controlplane

import (
	"errors"

	"berth.dev/berth/pkg/sandbox"
)

// ports of one sandbox on 127.0.0.1.
type ports struct {
	etcd, api, scheduler int
}

// reservePorts reserves the port that was asked for, or a free one, for the API server and free ones for the rest,
// until freePorts.
func (cp *controlPlane) reservePorts() error {
	for _, p := range []struct {
		want int
		into *int
	}{{cp.opts.Port, &cp.ports.api}, {0, &cp.ports.etcd}, {0, &cp.ports.scheduler}} {
		r, err := sandbox.ReservePort(p.want)
		if err != nil {
			return err
		}
		cp.reserved = append(cp.reserved, r)
		*p.into = r.Number
	}
	return nil
}

func (cp *controlPlane) freePorts() error {
	var errs []error
	for _, r := range cp.reserved {
		errs = append(errs, r.Close())
	}
	return errors.Join(errs...)
}
